import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Knex } from 'knex'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { startS3, type S3Bucket } from '../kit/s3.ts'
import { TestServer } from '../kit/system-server.ts'
import { waitFor } from '../kit/programs.ts'

// A real control plane whose files lie on a disk or in a bucket, and what must hold of them whatever happens.

interface Revision {
  id: string
  sha256: string
  sizeBytes: number
}

export interface Answer {
  status: number
  // Tests look into answers of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

export interface FilesStage {
  /** The first of the replicas. */
  server: TestServer
  servers: readonly TestServer[]
  /** null: on a disk. */
  bucket: S3Bucket | null
  /** Where the files lie for this test. null: in a bucket. */
  folder: string | null
  root: Knex
  /** Names of what lies in the storage, without its mark. */
  stored: () => string[]
  /** null: the server was gone before it answered. */
  ask(method: string, path: string, body?: unknown): Promise<Answer | null>
  /** Uploads this many bytes, all different; fails when it is refused. */
  upload(length: number): Promise<{ id: string; sha256: string }>
  /** The hash of the bytes of a version, as a client downloads them. */
  downloaded(id: string, revisionId: string): Promise<string>
  /**
   * Fails unless each file that is not deleted has the bytes of all of its versions, and nothing else lies in the storage
   * once the sweep has been there, an hour later for whatever nobody came to own. Files of more bytes than `longest` are not read.
   */
  checkAll(about: string, longest?: number): Promise<void>
  /** Waits for the end of the server if it has died. Returns whether it has. */
  hasDied(): Promise<boolean>
  close(): Promise<void>
}

export interface StageOptions {
  storage: 'disk' | 's3'
  /** Closed with the stage; default one on a server of its own. */
  bucket?: S3Bucket
  /** null: SQLite. */
  databaseUrl?: string | null
  env?: Readonly<Record<string, string>>
  /** On a disk: where it lies for the server, and for this test. */
  folder?: { served: string; seen: string }
  via?: readonly string[]
  /** Default 1; more need PostgreSQL. */
  replicas?: number
}

export async function startFilesStage(options: StageOptions): Promise<FilesStage> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-files-')))
  const bucket = options.storage === 's3' ? (options.bucket ?? (await startS3(join(folder, 's3')))) : null
  const { served, seen } = options.folder ?? { served: join(folder, 'files'), seen: join(folder, 'files') }
  const where =
    bucket === null ? { SVC_FILES_URL: `file://${served}` } : { SVC_FILES_URL: bucket.url, ...bucket.environment }
  const servers: TestServer[] = []
  for (let number = 1; number <= (options.replicas ?? 1); number++) {
    const made = new TestServer({
      name: number === 1 ? 'server' : `server-${number}`,
      root: folder,
      env: { SVC_SWEEP_MS: '100', UV_THREADPOOL_SIZE: '1', ...where, ...options.env },
      databaseUrl: options.databaseUrl ?? null,
      tokenOf: servers[0] ?? null,
      ...(options.via && { via: options.via }),
    })
    await made.start()
    servers.push(made)
  }
  const server = servers[0]!
  const database = openDatabase({ url: options.databaseUrl ?? join(server.dataDir, 'svc.db') })
  const stored = () => (bucket === null ? namesIn(seen) : bucket.keys().filter((key) => basename(key) !== 'mark'))
  return {
    server,
    servers,
    bucket,
    folder: bucket === null ? seen : null,
    root: database.root,
    stored,
    ...callsOf(server),
    checkAll: (about, longest) => checkAll({ server, root: database.root, stored }, { about, longest }),
    hasDied: async () => {
      if (await answers(server.url)) return false
      await server.program.exited
      return true
    },
    close: () => close(folder, { servers, bucket, database }),
  }
}

/** By a connection of its own: those of `fetch` may be to a process that is gone. */
const answers = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const asked = get(`${url}/healthz`, { agent: false }, (reply) => resolve((reply.resume(), true)))
    asked.once('error', () => resolve(false))
  })

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
let made = 0
function someBytes(length: number): Buffer {
  const bytes = Buffer.alloc(length, `${made++} `)
  for (let at = 0; at + 4 <= length; at += 4)
    bytes.writeUInt32LE((bytes.readUInt32LE(at) ^ Math.imul(at, 2_654_435_761)) >>> 0, at)
  return bytes
}
/** The body of an upload or a replacement. */
export function contentOf(length: number): { contentBase64: string; sha256: string } {
  const bytes = someBytes(length)
  return { contentBase64: bytes.toString('base64'), sha256: digestOf(bytes) }
}

function callsOf({ api }: Pick<TestServer, 'api'>): Pick<FilesStage, 'ask' | 'upload' | 'downloaded'> {
  return {
    async ask(method, path, body) {
      try {
        return await api.raw(method, path, { body })
      } catch {
        return null
      }
    },
    async upload(length) {
      const { contentBase64, sha256 } = contentOf(length)
      const { id } = await api.call<{ id: string }>('POST', '/files', { name: 'some.bin', contentBase64 })
      return { id, sha256 }
    },
    async downloaded(id, revisionId) {
      const { url } = await api.call<{ url: string }>('GET', `/files/${id}/revisions/${revisionId}/download`)
      const [reply] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage]
      if (reply.statusCode !== 200) throw new Error(`${id} ${revisionId}: ${reply.statusCode} ${await text(reply)}`)
      const hash = createHash('sha256')
      for await (const chunk of reply) hash.update(chunk as Buffer)
      return hash.digest('hex')
    },
  }
}

const namesIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    : []

/** A connection that was kept may be to a server that has died since; the next one is not. */
const steadily = <Value>(work: () => Promise<Value>, what: string) => waitFor(work, what, { ms: 5_000 })

async function checkAll(
  { server, root, stored }: { server: TestServer; root: Knex; stored: () => string[] },
  { about, longest = Infinity }: { about: string; longest?: number | undefined },
): Promise<void> {
  const { downloaded } = callsOf(server)
  const alive: { id: string }[] = await root('files').whereNull('deleted_at').select('id')
  for (const { id } of alive) {
    const path = `/files/${id}/revisions`
    const { data } = await steadily(() => server.api.call<{ data: Revision[] }>('GET', path), path)
    for (const revision of data) {
      if (revision.sizeBytes > longest) continue
      const hash = await steadily(() => downloaded(id, revision.id), `${id} is downloaded`)
      if (hash !== revision.sha256) throw new Error(`${about}: the bytes of ${id} ${revision.id} are others`)
    }
  }
  const hours = 2 * 3_600_000
  await root('blobs')
    .whereNull('owned_at')
    .whereNull('released_at')
    .update({ created_at: root.raw('created_at - ?', [hours]) })
  const owned = async () => {
    const found: { blob_id: string }[] = await root('file_revisions').whereNotNull('blob_id').select('blob_id')
    return found.map(({ blob_id: id }) => id).toSorted()
  }
  const rows = async () => {
    const found: { id: string }[] = await root('blobs').select('id')
    return found.map(({ id }) => id).toSorted()
  }
  const isSwept = async () => {
    const [wanted, known] = [JSON.stringify(await owned()), JSON.stringify(await rows())]
    return (
      wanted === known &&
      wanted ===
        JSON.stringify(
          stored()
            .map((name) => basename(name))
            .toSorted(),
        )
    )
  }
  await waitFor(isSwept, `${about}: the storage holds what rows own and nothing else`, {
    about: () => `${stored().join('\n')}\n${server.log.slice(-2_000)}`,
  })
}

async function close(
  folder: string,
  { servers, bucket, database }: { servers: readonly TestServer[]; bucket: S3Bucket | null; database: Database },
): Promise<void> {
  await database.close()
  for (const server of servers) await server.kill9()
  await bucket?.close()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** Deletes the file, so long ago that the next sweep purges it. */
export async function deletedLongAgo(stage: FilesStage, id: string): Promise<void> {
  await stage.ask('POST', '/files/bulk-delete', { fileIds: [id] })
  await stage
    .root('files')
    .where({ id })
    .update({ deleted_at: Date.now() - 11 * 60_000 })
}
