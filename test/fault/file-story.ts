import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { expect } from 'vitest'
import type { File, FileRevision } from '../../shared/api/file-fields.ts'
import { maxFileBytes } from '../../shared/api/file-fields.ts'
import { isLong } from '../kit/forms.ts'
import { waitFor } from '../kit/programs.ts'
import type { TestServer } from '../kit/system-server.ts'
import type { FilesStage } from './files-stage.ts'

// The life of the largest files, as a person sees it, with real servers that are killed in between, and in the long form started
// anew as well. Each request goes to the next replica. The stage has no files yet.

interface Answer {
  status: number
  // Tests look into answers of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

const pieceBytes = 192 * 1024

/** Bytes that come piece by piece, each a whole number of groups of base64 and another than the others at its beginning. */
function* piecesOf(seed: number, length: number): Generator<Buffer> {
  const piece = Buffer.alloc(pieceBytes)
  for (let at = 4; at < piece.length; at += 4) piece.writeUInt32LE(Math.imul(at + seed, 2_654_435_761) >>> 0, at)
  for (let at = 0; at < length; at += piece.length) {
    piece.writeUInt32LE(at, 0)
    yield piece.subarray(0, length - at)
  }
}

function hashOf(seed: number, length: number): string {
  const hash = createHash('sha256')
  for (const piece of piecesOf(seed, length)) hash.update(piece)
  return hash.digest('hex')
}

/** Only the beginning of a piece is encoded anew. */
function* uploadOf(seed: number, length: number, name: string | null): Generator<Buffer> {
  yield Buffer.from(name === null ? '{"contentBase64":"' : `{"name":${JSON.stringify(name)},"contentBase64":"`)
  let encoded: Buffer | null = null
  for (const piece of piecesOf(seed, length)) {
    if (piece.length === pieceBytes && encoded !== null) {
      // What was yielded before may not be sent yet.
      encoded = Buffer.from(encoded)
      encoded.write(piece.toString('base64', 0, 6))
    } else encoded = Buffer.from(piece.toString('base64'))
    yield encoded
  }
  yield Buffer.from('"}')
}

class Client {
  private readonly servers: readonly TestServer[]
  private turns = 0

  constructor(servers: readonly TestServer[]) {
    this.servers = servers
  }

  next(): TestServer {
    return this.servers[this.turns++ % this.servers.length]!
  }

  /** By a connection of its own: those that are kept may be to a server that is gone. */
  async ask(method: string, path: string, body: Iterable<string | Buffer> = []): Promise<Answer> {
    const { port, token } = this.next()
    const headers = {
      authorization: `Bearer ${token}`,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
    }
    const sent = request({ host: '127.0.0.1', port, method, path: `/api/v1${path}`, headers, agent: false })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    await pipeline(Readable.from(body), sent)
    const [reply] = await answered
    return { status: reply.statusCode!, body: reply.statusCode === 204 ? reply.resume() && null : await json(reply) }
  }

  /** The hash of what a URL gives, which another replica than the one that made it is asked for. */
  async downloaded(path: string): Promise<string> {
    const { status, body } = await this.ask('GET', `${path}/download`)
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
    const { pathname, search } = new URL(body.url)
    const asked = request({ host: '127.0.0.1', port: this.next().port, path: pathname + search, agent: false }).end()
    const [reply] = (await once(asked, 'response')) as [IncomingMessage]
    if (reply.statusCode !== 200) throw new Error(`${body.url}: ${reply.statusCode}`)
    const hash = createHash('sha256')
    for await (const chunk of reply) hash.update(chunk as Buffer)
    return hash.digest('hex')
  }
}

// A bucket takes what is so long in parts; a disk takes all alike.
const lesser = isLong ? 12_000_001 : 600_001
const [first, second, other] = [1, 2, 3].map((seed) => ({ seed, length: seed === 1 ? maxFileBytes : lesser }))

async function killAll({ servers }: FilesStage): Promise<void> {
  for (const server of servers) await server.kill9()
  for (const server of servers) await server.start()
}

/** `die`: has servers die and starts them again; what it uploads is deleted here. */
export async function fileStory(
  stage: FilesStage,
  die: (stage: FilesStage) => Promise<unknown> = killAll,
): Promise<void> {
  const { servers, root } = stage
  const client = new Client(servers)
  const [firstHash, secondHash, otherHash] = [first!, second!, other!].map(({ seed, length }) => hashOf(seed, length))

  const made = await client.ask('POST', '/files', uploadOf(first!.seed, first!.length, 'large.bin'))
  expect([made.status, made.body.sha256, made.body.sizeBytes]).toEqual([201, firstHash, maxFileBytes])
  const path = `/files/${(made.body as File).id}`
  for (const server of isLong ? servers : []) {
    expect(await server.end()).toEqual({ code: 0, signal: null })
    await server.start()
  }

  const replaced = await client.ask('POST', `${path}/replace`, uploadOf(second!.seed, second!.length, null))
  const another = await client.ask('POST', '/files', uploadOf(other!.seed, other!.length, 'other.bin'))
  const fileIds = [(another.body as File).id]
  const bulkDelete = async () => {
    const { body } = await client.ask('POST', '/files/bulk-delete', [JSON.stringify({ fileIds })])
    expect(body.results).toEqual([{ fileId: fileIds[0], ok: true }])
  }
  await bulkDelete()
  await die(stage)
  expect([replaced.status, replaced.body.sha256]).toEqual([200, secondHash])
  expect(await client.downloaded(path)).toBe(secondHash)
  const revisions = (await client.ask('GET', `${path}/revisions`)).body.data as FileRevision[]
  expect(revisions.map(({ version, sha256 }) => [version, sha256])).toEqual([
    [2, secondHash],
    [1, firstHash],
  ])
  expect(await client.downloaded(`${path}/revisions/${revisions[1]!.id}`)).toBe(firstHash)

  expect((await client.ask('DELETE', path)).status).toBe(204)
  const refused = await client.ask('POST', `${path}/restore`)
  expect([refused.status, refused.body.error.code]).toEqual([422, 'restore_r2_gone'])
  expect((await client.ask('GET', path)).status).toBe(404)

  const restored = await client.ask('POST', `/files/${fileIds[0]}/restore`)
  expect([restored.status, restored.body.sha256]).toEqual([200, otherHash])
  expect(await client.downloaded(`/files/${fileIds[0]}`)).toBe(otherHash)

  await bulkDelete()
  for (const { id } of (await client.ask('GET', '/files')).body.data as File[])
    await client.ask('DELETE', `/files/${id}`)
  expect(stage.stored()).not.toEqual([])
  // Ten minutes go by.
  await root('files').update({ deleted_at: root.raw('deleted_at - ?', [10 * 60_000]) })
  await waitFor(() => stage.stored().length === 0, 'nothing is stored any more', {
    about: () => `${stage.stored().join('\n')}\n${servers[0]!.log.slice(-2_000)}`,
  })
  for (const table of ['files', 'file_revisions', 'blobs'])
    await waitFor(async () => (await root(table).first()) === undefined, `${table} is empty`)
}
