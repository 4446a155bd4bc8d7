import { createHash } from 'node:crypto'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Knex } from 'knex'
import { expect } from 'vitest'
import { Blobs } from '../../control-plane/blobs/blobs.ts'
import { claimPlace } from '../../control-plane/blobs/claim-place.ts'
import { openBlobPlace, readLocation } from '../../control-plane/blobs/location.ts'
import { openDatabase } from '../../control-plane/db/open.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { purgeMs } from '../../control-plane/resources/files/rules.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { fileChanges, upload } from '../api/resources/files-kit.ts'
import { whileFilesAreTold } from '../kit/file-operations.ts'
import type { S3Bucket } from '../kit/s3.ts'
import { TestServer } from '../kit/server.ts'

/**
 * What a kill would leave of a change of a file, at each of its points: before each statement, each operation on files and each
 * request to a bucket, the database and the storage are copied as they lie there, and afterwards each copy is opened anew. Points
 * between which nothing was written are one.
 */
export class FilePoints {
  readonly server: TestServer
  /** Lengths of the parts that the bucket got. */
  readonly parts: number[] = []
  private readonly folder: string
  /** null: on a disk. */
  private readonly bucket: S3Bucket | null

  static async start(folder: string, bucket: S3Bucket | null): Promise<FilePoints> {
    mkdirSync(folder)
    const settings = {
      SVC_FILES_URL: bucket?.url ?? `file://${folder}/files`,
      ...bucket?.environment,
      // By hand alone.
      SVC_SWEEP_MS: '3600000',
    }
    const server = await TestServer.start({ file: join(folder, 'svc.db'), settings })
    // What was written is there after a kill, whether or not it would outlive a loss of power.
    await server.database.root.raw('pragma synchronous = off')
    await upload(server, { content: 'Left alone.' })
    return new FilePoints(server, folder, bucket)
  }

  private constructor(server: TestServer, folder: string, bucket: S3Bucket | null) {
    this.server = server
    this.folder = folder
    this.bucket = bucket
  }

  /** Walks through all points of a change with this content. Returns how many states a kill could leave. */
  async walk(name: string, content: string | Uint8Array): Promise<number> {
    const { root } = this.server.database
    const change = await fileChanges(this.server, content)[name]!()
    await this.server.plane.blobs.idle()
    const before = await rowsOf(root)
    const points: Point[] = []
    let isTold = false
    let last = ''
    const look = (at: string) => {
      // Until a request is done it has done nothing, or all of it: both are looked at.
      if (this.bucket?.isBusy() === true) return
      const state = this.state()
      if (state !== last) points.push(this.copy(`${name}, before ${at}`, isTold))
      last = state
    }
    await this.told(look, async () => {
      const { status } = await change()
      same(name, status < 400, true)
      isTold = true
      await this.server.plane.blobs.idle()
    })
    look('what comes next')
    const after = await rowsOf(root)
    for (const point of points) await this.check(point, { before, after })
    await this.clear()
    return points.length
  }

  /**
   * Fails the nth operation on files of a change, or all from there on, for each n that there is. Returns how often the storage
   * was unavailable to the client.
   */
  async fail(name: string, content: string | Uint8Array, { isLasting }: { isLasting: boolean }): Promise<number> {
    const { root } = this.server.database
    let refused = 0
    for (let nth = 1, count = Infinity; nth <= count; nth++) {
      const code = nth % 2 === 0 ? 'EIO' : 'ENOSPC'
      const about = `${name}, ${code} at ${nth}`
      const change = await fileChanges(this.server, content)[name]!()
      const before = await rowsOf(root)
      count = 0
      const tell = () => (++count === nth || (isLasting && count > nth) ? storageError(code) : null)
      const reply = await whileFilesAreTold(tell, async () => {
        const answer = await change()
        await this.server.plane.blobs.idle()
        return answer
      })
      if (reply.status < 400) continue
      refused++
      same(about, reply.body.error.code, 'storage_unavailable')
      same(about, await rowsOf(root), before)
    }
    const after = await rowsOf(root)
    // What was there before a failure is there after all of them.
    await this.check(this.copy(`${name} on a failing disk`, true), { before: after, after })
    await this.clear()
    return refused
  }

  async stop(): Promise<void> {
    await this.server.stop()
    rmSync(this.folder, { recursive: true })
  }

  /** Purges all files but the first one. */
  private async clear(): Promise<void> {
    const { root } = this.server.database
    const fileIds = (await root('files').whereNull('deleted_at').orderBy('created_at').pluck('id')).slice(1)
    if (fileIds.length > 0) await this.server.ok('/files/bulk-delete', { body: { fileIds } })
    this.server.world.advance(purgeMs + 1)
    await this.server.plane.sweeper.runAll()
  }

  private async told(look: (at: string) => void, work: () => Promise<void>): Promise<void> {
    const { root } = this.server.database
    const onQuery = ({ sql }: { sql: string }) => look(sql)
    root.on('query', onQuery)
    this.bucket?.fault(({ method, url = '', headers }) => {
      look(`${method} ${url}`)
      if (url.includes('partNumber=')) this.parts.push(Number(headers['content-length']))
      return null
    })
    try {
      await whileFilesAreTold((operation) => (look(operation), null), work)
    } finally {
      root.off('query', onQuery)
      this.bucket?.fault(null)
    }
  }

  private readonly databaseFiles = () => ['svc.db', 'svc.db-wal'].map((name) => join(this.folder, name))

  /** Says of two states whether they are one. */
  private state(): string {
    const kept = this.bucket?.folder ?? join(this.folder, 'files')
    const names = existsSync(kept) ? (readdirSync(kept, { recursive: true }) as string[]) : []
    return [...this.databaseFiles(), ...names.map((name) => join(kept, name))]
      .map((path) => {
        const { size, mtimeNs } = statSync(path, { bigint: true })
        return `${path} ${size} ${mtimeNs}`
      })
      .join('\n')
  }

  private copy(about: string, isTold: boolean): Point {
    const rows = join(this.folder, `point-${++copies}`)
    mkdirSync(rows)
    for (const path of this.databaseFiles()) copyFileSync(path, join(rows, basename(path)))
    const bucket = this.bucket?.copy() ?? null
    const files = join(rows, 'files')
    if (bucket === null) cpSync(join(this.folder, 'files'), files, { recursive: true })
    return {
      about,
      isTold,
      url: join(rows, 'svc.db'),
      location: bucket?.url ?? `file://${files}`,
      bucket,
      stored: () => (bucket === null ? filesIn(files) : bucket.keys().filter((key) => basename(key) !== 'mark')),
      async remove() {
        await bucket?.close()
        rmSync(rows, { recursive: true })
      },
    }
  }

  /** The change is done or not, and what is left is whole. */
  private async check({ isTold, ...left }: Point, { before, after }: { before: Rows; after: Rows }) {
    try {
      const rows = await checkLeft(left)
      const isDone = isTold || JSON.stringify(rows) !== JSON.stringify(before)
      same(left.about, rows, isDone ? after : before)
    } finally {
      await left.remove()
    }
  }
}

/** What a server left that is gone. */
export interface Left {
  about: string
  /** Of its database. */
  url: string
  /** Of its storage: `SVC_FILES_URL`. */
  location: string
  bucket: S3Bucket | null
  /** Names of what lies in the storage, without its mark. */
  stored: () => string[]
}

/**
 * Opens the rows and the bytes anew. Fails unless files that are not deleted have their bytes, and nothing lies in the storage but
 * what rows own once the sweep was there. Returns the rows.
 */
export async function checkLeft({ about, url, location: text, bucket, stored }: Left): Promise<Rows> {
  const { AWS_ACCESS_KEY_ID: keyId, AWS_SECRET_ACCESS_KEY: secret } = bucket?.environment ?? {}
  const location = readLocation(text, { keyId, secret })
  if (typeof location === 'string') throw new Error(location)
  const database = openDatabase({ url })
  try {
    const { root } = database
    await root.raw('pragma synchronous = off')
    const place = openBlobPlace(location, realWorld)
    await claimPlace(root, place, realWorld)
    const blobs = new Blobs({ root, place, world: realWorld, log: silentLog })
    const rows = await rowsOf(root)
    // Long after anything that was begun.
    await blobs.sweep(realWorld.now() + 1_000 * 3_600_000)
    await checkBytes(about, rows, blobs)
    const owned = rows.revisions.flatMap(({ blob_id: id }) => (id === null ? [] : [id])).toSorted()
    same(about, await root('blobs').orderBy('id').pluck('id'), owned)
    const names = stored().map((name) => basename(name))
    same(about, names.toSorted(), owned)
    return rows
  } finally {
    await database.close()
  }
}

interface Point extends Left {
  /** The client was told that it is done. */
  isTold: boolean
  remove(): Promise<void>
}

interface Rows {
  files: { id: string; deleted_at: number | null }[]
  revisions: { file_id: string; blob_id: string | null; sha256: string }[]
}

let copies = 0

function same(about: string, found: unknown, wanted: unknown): void {
  expect(found, about).toEqual(wanted)
}

const rowsOf = async (root: Knex): Promise<Rows> => ({
  files: await root('files').orderBy('id').select('id', 'version', 'blob_id', 'deleted_at'),
  revisions: await root('file_revisions').orderBy('id').select('id', 'file_id', 'blob_id', 'sha256'),
})

async function checkBytes(about: string, { files, revisions }: Rows, blobs: Blobs): Promise<void> {
  const active = new Set(files.flatMap((file) => (file.deleted_at === null ? [file.id] : [])))
  for (const { file_id: fileId, blob_id: blobId, sha256 } of revisions) {
    if (!active.has(fileId)) continue
    const hash = createHash('sha256')
    for await (const piece of await blobs.open(String(blobId))) hash.update(piece as Buffer)
    same(about, hash.digest('hex'), sha256)
  }
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

const storageError = (code: string): Error => Object.assign(new Error(`${code}: the disk fails`), { code })
