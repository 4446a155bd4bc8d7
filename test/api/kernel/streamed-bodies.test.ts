import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { DiskPlace } from '../../../control-plane/blobs/disk.ts'
import { StorageError, type BlobPlace } from '../../../control-plane/blobs/place.ts'
import { ownBlob } from '../../../control-plane/blobs/store.ts'
import { implement } from '../../../control-plane/http/implement.ts'
import { defineRoute, mebibyte } from '../../../shared/api/route.ts'
import { storedContent } from '../../../shared/api/stored-content.ts'
import { fail } from '../../../shared/api/errors.ts'
import { waitFor } from '../../kit/programs.ts'
import { call, codeOf, refusal, startServer, type ServerOptions, type TestServer } from './server.ts'

// Bodies of which a text in base64 is stored while it comes.

const limit = 3 * mebibyte
const routes = {
  keep: defineRoute({
    id: 'streamed.keep',
    endpoint: 'POST /keep',
    summary: 'Keeps bytes',
    bodyLimit: 5 * mebibyte,
    streamed: { key: 'contentBase64', limit },
    body: z.object({ name: z.string().max(100), contentBase64: storedContent, mayFail: z.boolean().default(false) }),
    reply: z.object({ name: z.string(), sha256: z.string(), sizeBytes: z.number(), head: z.string() }),
    errors: ['content_required', 'storage_unavailable', 'agent_not_found'],
  }),
}

let server: TestServer
let folder: string
afterEach(() => server.close())

async function start(options: Partial<ServerOptions> = {}): Promise<void> {
  folder = mkdtempSync(join(inject('databases').folder, 'streamed-'))
  const implemented = implement(routes, {
    async keep({ db, body, world }) {
      const { sha256, sizeBytes, head, blobId } = body.contentBase64
      await ownBlob(db, blobId, world.now())
      if (body.mayFail) fail('agent_not_found')
      return { name: body.name, sha256, sizeBytes, head: Buffer.from(head).toString('latin1') }
    },
  })
  server = await startServer({ routes: implemented, place: new DiskPlace(folder), ...options })
}

const stored = (): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
const rows = async () => (await server.database.root('blobs').select('id')).length
const nothingLeft = () => waitFor(async () => stored().length === 0 && (await rows()) === 0, 'nothing is left')
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const body = (bytes: Uint8Array, more: object = {}) => ({
  name: 'a',
  contentBase64: Buffer.from(bytes).toString('base64'),
  ...more,
})

test('the handler gets what the bytes are, and they are stored', async () => {
  await start()
  const bytes = Buffer.alloc(limit, 'some text. ')
  for (const sent of [bytes, Buffer.alloc(0)]) {
    const { status, body: reply } = await call(server, '/keep', { body: body(sent) })
    expect([status, reply]).toEqual([
      200,
      { name: 'a', sha256: sha256(sent), sizeBytes: sent.length, head: sent.toString('latin1', 0, 8192) },
    ])
  }
  expect(stored()).toHaveLength(2)
})

test('packed and unmeasured bodies are read as well', async () => {
  await start()
  const bytes = Buffer.alloc(mebibyte, 'x')
  const text = JSON.stringify(body(bytes))
  const packed = await call(server, '/keep', { raw: gzipSync(text), headers: { 'content-encoding': 'gzip' } })
  expect(packed.body).toMatchObject({ sha256: sha256(bytes) })
  const unmeasured = await call(server, '/keep', { raw: new Blob([text]).stream() })
  expect(unmeasured.body).toMatchObject({ sha256: sha256(bytes) })
})

test('what is refused leaves nothing', async () => {
  await start()
  const bytes = Buffer.alloc(200_000, 'x')
  const asks: [unknown, (string | number)[]][] = [
    [{ name: 'a' }, [400, 'content_required']],
    [{ name: 'a', contentBase64: null }, [400, 'content_required']],
    [{}, [400, 'content_required']],
    [{ name: 'a', contentBase64: 7 }, [400, 'validation_error']],
    [[], [400, 'validation_error']],
    [{ name: 'a', contentBase64: 'no base64!' }, [400, 'validation_error']],
    [{ name: 'a', contentBase64: `${Buffer.alloc(100_000).toString('base64')}?` }, [400, 'validation_error']],
    [body(bytes, { name: 7 }), [400, 'validation_error']],
    [body(bytes, { name: '\u0000' }), [400, 'validation_error']],
    [body(bytes, { mayFail: true }), [404, 'agent_not_found']],
    [body(bytes, { name: 'x'.repeat(1_100_000) }), [400, 'validation_error']],
    [body(Buffer.alloc(limit + 1)), [413, 'validation_error']],
    [body(Buffer.alloc(limit * 2)), [413, 'payload_too_large']],
  ]
  for (const [sent, expected] of asks) {
    expect([sent, await refusal(server, '/keep', { body: sent })]).toEqual([sent, expected])
    expect(stored()).toEqual([])
    expect(await rows()).toBe(0)
  }
  const text = JSON.stringify(body(bytes))
  const broken: [string | Uint8Array, Record<string, string>][] = [
    [text.slice(0, -1), {}],
    [`${text} x`, {}],
    [text.slice(0, 100_000), {}],
    [gzipSync(text).subarray(0, 150), { 'content-encoding': 'gzip' }],
    [text, { 'content-encoding': 'gzip' }],
    [text, { 'content-encoding': 'zstd' }],
    [text, { 'content-type': 'text/plain' }],
    [`{"contentBase64":"YQ==",${text.slice(1)}`, {}],
  ]
  for (const [raw, headers] of broken) {
    expect(await refusal(server, '/keep', { raw, headers })).toEqual([400, 'validation_error'])
    expect(stored()).toEqual([])
    expect(await rows()).toBe(0)
  }
})

/** A request that says how long it is and sends only its beginning. */
async function begin(text: string, length: number): Promise<ClientRequest> {
  const sent = request(`${server.url}/api/v1/keep`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.seed.ownerToken}`,
      'content-type': 'application/json',
      'content-length': length,
    },
  })
  sent.on('error', () => undefined)
  sent.write(text)
  await once(sent, 'socket')
  return sent
}

test('a connection that is cut leaves nothing', async () => {
  await start()
  const text = JSON.stringify(body(Buffer.alloc(mebibyte)))
  const sent = await begin(text.slice(0, 900_000), text.length)
  await waitFor(() => stored().some((name) => name.endsWith('.part')), 'the bytes are stored')
  sent.destroy()
  await nothingLeft()
})

test('content that is too large is refused while the sender still sends', async () => {
  await start()
  const text = JSON.stringify(body(Buffer.alloc(limit + 3 * 48_000)))
  const sent = await begin(text.slice(0, -10), text.length)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  expect(answer.statusCode).toBe(413)
  await nothingLeft()
  sent.destroy()
})

test('one idempotency key is one set of bytes: repeated it stores nothing, with other bytes it is refused', async () => {
  await start()
  const headers = { 'idempotency-key': 'one' }
  const first = await call(server, '/keep', { body: body(Buffer.from('bytes')), headers })
  const again = await call(server, '/keep', { body: body(Buffer.from('bytes')), headers })
  expect([again.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([200, first.body, 'true'])
  expect(await refusal(server, '/keep', { body: body(Buffer.from('other')), headers })).toEqual([
    409,
    'idempotency_key_reused',
  ])
  await waitFor(async () => stored().length === 1 && (await rows()) === 1, 'the bytes of the first request alone')
})

test('the censor of what agents send sees the rest of the body, not the bytes', async () => {
  const seen: unknown[] = []
  await start({ censor: (_, value) => Promise.resolve((seen.push(value), { ...(value as object), name: 'censored' })) })
  const reply = await call(server, '/keep', { body: body(Buffer.from('a secret')), token: server.seed.agentToken })
  expect(reply.body).toMatchObject({ name: 'censored', head: 'a secret' })
  expect(seen).toEqual([{ name: 'a', contentBase64: 0 }])
})

test('a storage that fails is told, and the key may be used again', async () => {
  let isAway = true
  class AtTimes extends DiskPlace implements BlobPlace {
    override async put(...args: Parameters<DiskPlace['put']>): Promise<void> {
      if (isAway) throw new StorageError('a place', new Error('ENOSPC'))
      return super.put(...args)
    }
  }
  await start({ place: new AtTimes(mkdtempSync(join(inject('databases').folder, 'streamed-'))) })
  const sent = { body: body(Buffer.alloc(100_000)), headers: { 'idempotency-key': 'again' } }
  const refused = await call(server, '/keep', sent)
  expect([refused.status, codeOf(refused), refused.headers.get('retry-after')]).toEqual([
    503,
    'storage_unavailable',
    '5',
  ])
  isAway = false
  expect((await call(server, '/keep', sent)).status).toBe(200)
  expect(existsSync(folder)).toBe(true)
})
