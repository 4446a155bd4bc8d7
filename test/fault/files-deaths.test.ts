import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { hasPostgres, openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { whyNoFailingDisk } from '../kit/failing-disk.ts'
import { isLong } from '../kit/forms.ts'
import { fileThreadOf, killAt } from '../kit/traced-thread.ts'
import { startS3, type S3Bucket } from '../kit/s3.ts'
import { seededRandom, waitFor } from '../kit/programs.ts'
import { testFailingDisk } from './failing-storage.ts'
import { checkLeft, FilePoints } from './file-points.ts'
import { fileStory } from './file-story.ts'
import { contentOf, deletedLongAgo, startFilesStage, type FilesStage } from './files-stage.ts'

// Rows and bytes do not come apart: `kill -9` of a real server before and after each operation on a file, each write of its
// database, and each request to its bucket, while files are uploaded, replaced, deleted, restored and purged. The long form walks
// through all points of all operations, in a bucket on PostgreSQL. The short one kills once with each storage, at a point that is
// drawn, and looks at what kills at all points of all operations would leave of a server in this process.

interface Operation {
  /** Resolves with what is done while the server dies: true when the client was told that it is done. */
  ready(stage: FilesStage, length: number): Promise<() => Promise<boolean>>
}

/** What a client was told must be so; what it was not told may be so or not. */
const operations: Record<string, Operation> = {
  upload: {
    ready: async (stage, length) => async () => {
      const { contentBase64, sha256 } = contentOf(length)
      const answer = await stage.ask('POST', '/files', { name: 'new.bin', contentBase64 })
      return promised(stage, answer?.status === 201 ? { id: answer.body.id, sha256 } : null)
    },
  },
  replace: {
    async ready(stage, length) {
      const { id } = await stage.upload(10)
      return async () => {
        const { contentBase64, sha256 } = contentOf(length)
        const answer = await stage.ask('POST', `/files/${id}/replace`, { contentBase64 })
        return promised(stage, answer?.status === 200 ? { id, sha256 } : null)
      }
    },
  },
  delete: {
    async ready(stage, length) {
      const { id } = await stage.upload(length)
      const { blob_id: blob } = await stage.root('files').where({ id }).first('blob_id')
      return async () => {
        const isTold = (await stage.ask('DELETE', `/files/${id}`))?.status === 204
        // The bytes go after the answer.
        const isGone = async () => (await stage.root('blobs').where({ id: blob }).first()) === undefined
        if (isTold)
          await waitFor(async () => !stage.server.isRunning || (await isGone()), 'its bytes go, or the server')
        return isTold
      }
    },
  },
  'bulk-delete': {
    async ready(stage, length) {
      const fileIds = [(await stage.upload(length)).id, (await stage.upload(10)).id]
      return async () => (await stage.ask('POST', '/files/bulk-delete', { fileIds }))?.status === 200
    },
  },
  restore: {
    async ready(stage, length) {
      const { id, sha256 } = await stage.upload(length)
      await stage.ask('POST', '/files/bulk-delete', { fileIds: [id] })
      return async () =>
        promised(stage, (await stage.ask('POST', `/files/${id}/restore`))?.status === 200 ? { id, sha256 } : null)
    },
  },
  purge: {
    async ready(stage, length) {
      const { id } = await stage.upload(length)
      await stage.ask('POST', `/files/${id}/replace`, { contentBase64: contentOf(length).contentBase64 })
      return async () => {
        await deletedLongAgo(stage, id)
        const isGone = async () => (await stage.root('files').where({ id }).first()) === undefined
        await waitFor(async () => !stage.server.isRunning || (await isGone()), 'it is purged, or the server dies')
        return isGone()
      }
    },
  },
}

/** The files whose bytes a client was promised. */
const promises = new WeakMap<FilesStage, Map<string, string>>()
function promised(stage: FilesStage, file: { id: string; sha256: string } | null): boolean {
  if (file === null) return false
  promises.set(stage, (promises.get(stage) ?? new Map<string, string>()).set(file.id, file.sha256))
  return true
}

/** A way to die at the nth of some points; answers what is left to do when it did not come to that. */
type Death = (stage: FilesStage, nth: number) => Promise<() => Promise<void>>

const atFile: Death = ({ server }, nth) => killAt(fileThreadOf(server.program.pid), { nth })
const atRow: Death = ({ server }, nth) => {
  const paths = ['svc.db', 'svc.db-wal'].map((name) => join(server.dataDir, name))
  return killAt(server.program.pid, { nth, paths })
}
/** By turns before a request is taken, and after it was done and before it was answered. */
const atRequest: Death = async ({ server, bucket }, nth) => {
  let left = Math.ceil(nth / 2)
  let dying = Promise.resolve()
  bucket!.fault(() => {
    if (--left !== 0) return null
    // Waited for from now on, though the service has yet to do what it is asked.
    const { promise, resolve } = Promise.withResolvers<void>()
    dying = promise
    const kill = () => server.kill9().then(resolve)
    if (nth % 2 === 0) return kill
    void kill()
    return 'cut'
  })
  return async () => {
    bucket!.fault(null)
    await dying
  }
}

interface DieOptions {
  name: string
  nth: number
  death: Death
  /** What is longer is downloaded by somebody else. */
  longest?: number
}

async function die(stage: FilesStage, { name, nth, death, longest }: DieOptions) {
  const { server } = stage
  // A bucket takes the larger one in parts.
  const act = await operations[name]!.ready(stage, stage.bucket === null ? 300_000 : 5 * 1024 * 1024 + 1)
  const undo = await death(stage, nth)
  const isTold = await act()
  await undo()
  const isDead = await stage.hasDied()
  if (isDead) await server.start()
  const about = `${name}, ${death.name} ${nth}, ${isTold ? 'told' : 'not told'}, ${isDead ? 'dead' : 'alive'}`
  await stage.checkAll(about, longest)
  for (const [id, sha256] of promises.get(stage) ?? [])
    expect([about, id, (await stage.ask('GET', `/files/${id}`))?.body.sha256]).toEqual([about, id, sha256])
  promises.delete(stage)
  return isDead
}

const names = Object.keys(operations)
const random = seededRandom('files')
/** More points than each of them has; those without one are not reached. */
const most = 200

interface Dying {
  name: string
  death: Death
}

async function dieAtEach(stage: FilesStage, { name, death }: Dying): Promise<number> {
  let nth = 1
  while (nth < most && (await die(stage, { name, nth, death }))) nth++
  return nth - 1
}

/** At one of the first points; at an earlier one when the operation has less. It may have none. */
async function dieOnce(stage: FilesStage, dying: Omit<DieOptions, 'nth'>): Promise<boolean> {
  for (let nth = 1 + Math.floor(random() * 3); nth > 0; nth = Math.floor(nth / 2))
    if (await die(stage, { ...dying, nth })) return true
  return false
}

async function dieOften(stage: FilesStage, deaths: readonly Death[]): Promise<number> {
  let count = 0
  for (const name of names) for (const death of deaths) count += await dieAtEach(stage, { name, death })
  process.stderr.write(`files: a server died ${count} times\n`)
  return count
}

/** Tests of what kills would leave. `parts`: so many bytes that they take several writes, or the bucket gets them in parts. */
function testPoints(bucket: () => S3Bucket | null, parts: number): () => FilePoints {
  let folder: string
  let points: FilePoints
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-points-'))
    points = await FilePoints.start(join(folder, 'server'), bucket())
  })
  afterAll(async () => {
    await points?.stop()
    rmSync(folder, { recursive: true })
  })

  // As many as there are states of rows and bytes at least.
  test.each([
    ['upload', parts, 7],
    ['replace', 10, 4],
    ['delete', 10, 4],
    ['bulk-delete', 10, 2],
    ['restore', 10, 2],
    ['purge', 10, 4],
  ])('%s is done or not, wherever a kill comes', async (name, length, states) => {
    expect(await points.walk(name, Buffer.alloc(length, name))).toBeGreaterThanOrEqual(states)
  })
  return () => points
}

const why = whyNoFailingDisk()
if (why !== null) process.stderr.write(`NOT RUN: ${why}, so no server died at a file, and none failed\n`)

const timeout = isLong ? 3_600_000 : 120_000

describe('on a disk, with SQLite', () => {
  let stage: FilesStage
  beforeAll(async () => {
    stage = await startFilesStage({ storage: 'disk' })
  })
  afterAll(() => stage?.close())

  // The first one, as it begins and ends without files. In the short form its server dies at an operation on a file or its row.
  test('the largest file outlives a death, is replaced, deleted, restored and purged', { timeout }, async () => {
    const death = random() < 0.5 ? atFile : atRow
    if (isLong || why !== null) await fileStory(stage)
    else
      await fileStory(stage, async () =>
        expect(await dieOnce(stage, { name: 'upload', death, longest: 1_000_000 })).toBe(true),
      )
  })

  describe.skipIf(why !== null)('that fails', () => {
    testFailingDisk(() => stage)
  })

  if (isLong)
    test.skipIf(why !== null)(
      'a server that dies anywhere leaves all bytes that are owned, and no others',
      { timeout },
      async () => expect(await dieOften(stage, [atFile, atRow])).toBeGreaterThan(50),
    )

  describe('of a server in this process', () => {
    const points = testPoints(() => null, 300_000)

    // A folder is made and synced, a draft opened, written twice, synced and given its name, and the folder synced again.
    test.each([
      ['upload', 300_000, { isLasting: false }, 8],
      ['upload', 300_000, { isLasting: true }, 8],
      ['replace', 10, { isLasting: true }, 7],
      ['delete', 10, { isLasting: true }, 0],
    ])('%s is refused or done, whichever operation on files fails', async (name, length, how, refusals) => {
      expect(await points().fail(name, Buffer.alloc(length, name), how)).toBeGreaterThanOrEqual(refusals)
    })
  })
})

describe('in a bucket', () => {
  let bucket: S3Bucket
  let database: PostgresDatabase | null = null
  let stage: FilesStage
  beforeAll(async () => {
    bucket = await startS3(mkdtempSync(join(inject('databases').folder, 's3-')))
    database = isLong && hasPostgres() ? await openPostgres() : null
    stage = await startFilesStage({ storage: 's3', bucket: bucket.copy(), databaseUrl: database?.url ?? null })
  })
  afterAll(async () => {
    await stage?.close()
    await database?.close()
    await bucket.close()
  })

  test('a server that dies at any request leaves all bytes that are owned, and no others', { timeout }, async () => {
    if (isLong) return expect(await dieOften(stage, [atRequest])).toBeGreaterThan(12)
    const nth = 1 + Math.floor(random() * 2)
    const act = await operations['replace']!.ready(stage, 10)
    const undo = await atRequest(stage, nth)
    expect(await act()).toBe(false)
    await undo()
    await stage.server.program.exited
    const url = join(stage.server.dataDir, 'svc.db')
    const own = { bucket: stage.bucket, location: stage.bucket!.url, stored: stage.stored }
    const { files } = await checkLeft({ about: `replace, request ${nth}`, url, ...own })
    expect(files).toMatchObject([{ version: 1, deleted_at: null }])
  })

  describe('of a server in this process', () => {
    const fiveMebibytes = 5 * 1024 * 1024
    const points = testPoints(() => bucket, fiveMebibytes + 7)
    // As services take them.
    test('parts have five mebibytes, and the last one has the rest', () => {
      expect(points().parts).toEqual([fiveMebibytes, 7])
    })
  })
})
