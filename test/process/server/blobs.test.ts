import { idFrom, type BlobId } from '../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Blobs, forgottenMs } from '../../../control-plane/blobs/blobs.ts'
import { claimPlace } from '../../../control-plane/blobs/claim-place.ts'
import { openBlobPlace, readLocation, type BlobLocation } from '../../../control-plane/blobs/location.ts'
import type { BlobPlace } from '../../../control-plane/blobs/place.ts'
import { S3Place } from '../../../control-plane/blobs/s3.ts'
import { insertBlob, ownBlob } from '../../../control-plane/blobs/store.ts'
import { inTransaction } from '../../../control-plane/db/transaction.ts'
import type { Database } from '../../../control-plane/db/open.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { openSqlite } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'
import { movableWorld, type MovableWorld } from '../../kit/server.ts'
import { startS3, type S3Bucket } from '../../kit/s3.ts'
import { smallDisk, whyNoSmallDisk } from '../../kit/small-disk.ts'

// Blobs on a disk and in a bucket: one suite for both.

const mebibyte = 1024 * 1024
/** Parts of a bucket are shorter than services take, so that a few bytes are several of them; `fault/files-deaths` has whole ones. */
const partBytes = 128 * 1024
const workspaceId = '00000000-0000-4000-8000-000000000001'

let folder: string
let bucket: S3Bucket
let database: Database
let world: MovableWorld
/** How long a try waited for the one before it: nobody waits here. */
let waits: number[]

beforeEach(() => {
  waits = []
  world = { ...movableWorld(), sleep: (ms) => Promise.resolve(void waits.push(ms)) }
})
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-blobs-'))
  bucket = await startS3(join(folder, 's3'))
})
afterAll(async () => {
  await bucket.close()
  rmSync(folder, { recursive: true, force: true })
})
afterEach(async () => {
  bucket.fault(null)
  await database.close()
})

interface Kept {
  blobs: Blobs
  place: BlobPlace
  /** What lies in the place, the mark left out. */
  things: () => string[]
}

async function keptIn(location: BlobLocation, list: () => string[]): Promise<Kept> {
  database = openSqlite()
  const place = inShortParts(location)
  const before = new Set(list())
  await claimPlace(database.root, place, world)
  const blobs = new Blobs({ root: database.root, place, world, log: silentLog })
  return { blobs, place, things: () => list().filter((name) => !name.endsWith('/mark') && !before.has(name)) }
}

const inShortParts = (location: BlobLocation): BlobPlace =>
  location.kind === 's3' ? new S3Place(location, world, { partBytes }) : openBlobPlace(location, world)

const filesIn = (path: string): string[] =>
  !existsSync(path)
    ? []
    : readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))

const onDisk = () => {
  const path = mkdtempSync(join(folder, 'disk-'))
  return keptIn({ kind: 'disk', folder: path }, () => filesIn(path))
}
const inBucket = () => keptIn(locationOf(bucket), () => bucket.keys())
const locationOf = ({ url, environment }: S3Bucket): BlobLocation => {
  const keys = { keyId: environment.AWS_ACCESS_KEY_ID, secret: environment.AWS_SECRET_ACCESS_KEY }
  const location = readLocation(url, keys)
  if (typeof location === 'string') throw new Error(location)
  return location
}

async function* of(bytes: Buffer, failsAt = Infinity): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 70_001) {
    if (at >= failsAt) throw new Error('the connection was cut')
    yield bytes.subarray(at, at + 70_001)
  }
}
const bytesOf = (length: number): Buffer => {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) >>> 0, Math.min(at, length - 4))
  return bytes
}
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
async function read(blobs: Blobs, id: string, range?: { start: number; end: number }): Promise<Buffer> {
  return Buffer.concat(await (await blobs.open(id, range)).toArray())
}
const own = (id: BlobId) => inTransaction(database.root, (tx) => ownBlob(tx, id, world.now()))
const rows = () => database.root('blobs').select('id')

/**
 * Nothing, a piece, and lengths around that of a part, in which a bucket takes what is longer, and of two parts and a bit.
 * The short form leaves out what lies between nothing and a whole part.
 */
const lengths = isLong ? [0, 1, 70_001, partBytes - 1, partBytes, 2 * partBytes + 7] : [0, partBytes, 2 * partBytes + 7]

describe.each([
  ['disk', onDisk],
  ['s3', inBucket],
] as const)('%s', (kind, keep) => {
  test.each(lengths)('%i bytes come back, whole and in parts', async (length) => {
    const { blobs } = await keep()
    const bytes = length < 4 ? Buffer.alloc(length, 7) : bytesOf(length)
    const stored = await blobs.put(of(bytes), { workspaceId: idFrom(workspaceId) })
    expect(stored).toMatchObject({ sizeBytes: length, sha256: sha256(bytes) })
    expect(sha256(await read(blobs, stored.blobId))).toBe(stored.sha256)
    const [start, end] = [Math.floor(length / 3), Math.floor(length / 2)]
    expect((await read(blobs, stored.blobId, { start, end })).equals(bytes.subarray(start, end))).toBe(true)
    expect((await read(blobs, stored.blobId, { start, end: length })).equals(bytes.subarray(start))).toBe(true)
    expect(Buffer.concat(await (await blobs.open(stored.blobId, undefined, length)).toArray())).toHaveLength(length)
    for (const range of length === 0 ? [undefined] : [undefined, { start: 0, end: length }])
      await expect(blobs.open(stored.blobId, range, length + 1)).rejects.toMatchObject({ name: 'StorageError' })
  })

  test('a source that fails leaves no bytes and no row', async () => {
    const { blobs, things } = await keep()
    const cut = blobs.put(of(bytesOf(3 * partBytes), 2 * partBytes), { workspaceId: idFrom(workspaceId) })
    await expect(cut).rejects.toThrow('the connection was cut')
    expect(things()).toEqual([])
    expect(await rows()).toEqual([])
  })

  test('released bytes are gone once it is committed, and not when it is undone', async () => {
    const { blobs, things } = await keep()
    const { blobId } = await blobs.put(of(bytesOf(100)), { workspaceId: idFrom(workspaceId) })
    await own(blobId)
    await blobs.giveUp(blobId)
    const undone = inTransaction(database.root, async (tx) => {
      await blobs.release(tx, [blobId])
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    await blobs.idle()
    expect(await read(blobs, blobId)).toHaveLength(100)
    await inTransaction(database.root, (tx) => blobs.release(tx, [blobId]))
    await blobs.idle()
    expect(things()).toEqual([])
    expect(await rows()).toEqual([])
    await expect(blobs.open(blobId)).rejects.toMatchObject({ name: 'BlobMissingError' })
  })

  test('the sweep removes what nobody owns after an hour, whole or in parts, and nothing else', async () => {
    const { blobs, place, things } = await keep()
    const begun = world.now()
    const kept = await blobs.put(of(bytesOf(100)), { workspaceId: idFrom(workspaceId) })
    await own(kept.blobId)
    await blobs.put(of(bytesOf(100)), { workspaceId: idFrom(workspaceId) })
    // As a process leaves it that was killed in the middle of an upload.
    const half = world.id('blb_')
    await insertBlob(database.root, { id: half, workspaceId: idFrom(workspaceId), createdAt: world.now() })
    const beginUpload = async (upload: string) =>
      void (await database.root('blobs').where({ id: half }).update({ upload }))
    await stuck((source) => void place.put({ id: half, beginUpload }, source).catch(() => undefined))
    const before = things().length
    expect(before).toBeGreaterThanOrEqual(3)
    await blobs.sweep(begun + forgottenMs - 1_000)
    expect(things()).toHaveLength(before)
    await blobs.sweep(world.now() + forgottenMs + 1)
    expect(things()).toHaveLength(1)
    expect(await rows()).toEqual([{ id: kept.blobId }])
    expect(await read(blobs, kept.blobId)).toHaveLength(100)
  })

  test('a place that another database uses, or that is not there, is refused with a sentence', async () => {
    const { place } = await keep()
    await claimPlace(database.root, place, world)
    const elsewhere = openBlobPlace(
      kind === 'disk'
        ? { kind, folder: join(folder, 'elsewhere') }
        : ({ ...locationOf(bucket), prefix: 'elsewhere' } as never),
      world,
    )
    await expect(claimPlace(database.root, elsewhere, world)).rejects.toThrow(
      /^The files of this database are not in the (folder|bucket) .*All replicas share one folder or bucket/,
    )
  })
})

/** Puts a source that gives a part and a bit, and then waits for ever. */
async function stuck(put: (source: AsyncIterable<Buffer>) => void): Promise<void> {
  await new Promise<void>((waits) => {
    async function* source() {
      yield* of(bytesOf(partBytes + 100_000))
      waits()
      await new Promise(() => undefined)
    }
    put(source())
  })
}

test('blobs on a disk are for their owner only', async () => {
  const { blobs, things } = await onDisk()
  await blobs.put(of(bytesOf(10)), { workspaceId: idFrom(workspaceId) })
  const [path] = things()
  expect(statSync(path!).mode & 0o777).toBe(0o600)
  expect(statSync(join(path!, '..')).mode & 0o777).toBe(0o700)
})

test.skipIf(whyNoSmallDisk() !== null)(
  'a full disk is a failure of the storage, and loses nothing that was there',
  async () => {
    const disk = await smallDisk(mkdtempSync(join(folder, 'small-')), 4)
    try {
      const { blobs, things } = await keptIn({ kind: 'disk', folder: join(disk.seenAt, 'files') }, () =>
        filesIn(join(disk.seenAt, 'files')),
      )
      const { blobId } = await blobs.put(of(bytesOf(mebibyte)), { workspaceId: idFrom(workspaceId) })
      await own(blobId)
      await expect(blobs.put(of(bytesOf(4 * mebibyte)), { workspaceId: idFrom(workspaceId) })).rejects.toMatchObject({
        name: 'StorageError',
      })
      disk.fill()
      await expect(blobs.put(of(bytesOf(10)), { workspaceId: idFrom(workspaceId) })).rejects.toMatchObject({
        name: 'StorageError',
      })
      expect(things()).toHaveLength(1)
      expect(await read(blobs, blobId)).toHaveLength(mebibyte)
      disk.free()
      await blobs.put(of(bytesOf(mebibyte)), { workspaceId: idFrom(workspaceId) })
      expect(await rows()).toHaveLength(2)
    } finally {
      await disk.close()
    }
  },
)

test('a bucket that is busy for a moment is asked again; one that is away loses nothing', async () => {
  const { blobs, things } = await inBucket()
  let refused = 0
  bucket.fault(({ method }) => (method === 'PUT' && ++refused % 2 === 1 ? 503 : null))
  const stored = await blobs.put(of(bytesOf(2 * partBytes + 7)), { workspaceId: idFrom(workspaceId) })
  await own(stored.blobId)
  expect(refused).toBe(6)
  // Once before each part; a tenth of a second at least.
  expect(waits.map((ms) => ms >= 100)).toEqual([true, true, true])
  bucket.fault(({ method }) => (method === 'PUT' ? 'cut' : null))
  await expect(blobs.put(of(bytesOf(partBytes + 100_000)), { workspaceId: idFrom(workspaceId) })).rejects.toMatchObject(
    {
      name: 'StorageError',
    },
  )
  bucket.fault(() => 503)
  await expect(blobs.open(stored.blobId)).rejects.toMatchObject({ name: 'StorageError' })
  await expect(blobs.put(of(bytesOf(10)), { workspaceId: idFrom(workspaceId) })).rejects.toMatchObject({
    name: 'StorageError',
  })
  bucket.fault(null)
  await blobs.sweep(world.now() + forgottenMs + 1)
  expect(things()).toHaveLength(1)
  expect(sha256(await read(blobs, stored.blobId))).toBe(stored.sha256)
})

/** As a process leaves it that was killed between the begin of an upload and the row that notes its name. */
async function unnoted(place: Kept['place']): Promise<string> {
  const id = world.id('blb_')
  await insertBlob(database.root, { id, workspaceId: idFrom(workspaceId), createdAt: world.now() })
  await new Promise<void>((begun) => {
    const beginUpload = () => (begun(), new Promise<void>(() => undefined))
    void place.put({ id, beginUpload }, of(bytesOf(partBytes + 100_000)))
  })
  return id
}
const isList = ({ method, url = '' }: IncomingMessage) => method === 'GET' && url.includes('uploads=')

test('an upload that was begun and whose name nobody noted is found by its key', async () => {
  const { blobs, place, things } = await inBucket()
  await unnoted(place)
  expect(things()).toEqual([expect.stringMatching(/_uploads.*\/key$/)])
  // One that goes on.
  const other = await unnoted(place)
  await database.root('blobs').where({ id: other }).update({ owned_at: world.now() })
  expect(things()).toHaveLength(2)
  bucket.fault((request) => (isList(request) ? 503 : null))
  await expect(blobs.sweep(world.now() + forgottenMs + 1)).rejects.toMatchObject({ name: 'StorageError' })
  expect(await rows()).toHaveLength(2)
  bucket.fault(null)
  await blobs.sweep(world.now() + forgottenMs + 1)
  expect(things()).toHaveLength(1)
  expect(await rows()).toEqual([{ id: other }])
})

test.each(isLong ? [403, 405, 501] : [403, 501])(
  'a bucket that answers %i to who lists uploads is removed from all the same',
  async (status) => {
    const { blobs, place, things } = await inBucket()
    const { blobId } = await blobs.put(of(bytesOf(100)), { workspaceId: idFrom(workspaceId) })
    await unnoted(place)
    let listed = 0
    bucket.fault((request) => (isList(request) ? (listed++, status) : null))
    await blobs.sweep(world.now() + forgottenMs + 1)
    expect(listed).toBe(2)
    expect(await rows()).toEqual([])
    expect(things()).not.toContainEqual(expect.stringContaining(blobId))
  },
)

test('bytes that were stored to the end are removed without a look for uploads', async () => {
  const { blobs, things } = await inBucket()
  const [refused, released] = [
    await blobs.put(of(bytesOf(partBytes + 100_000)), { workspaceId: idFrom(workspaceId) }),
    await blobs.put(of(bytesOf(partBytes + 100_000)), { workspaceId: idFrom(workspaceId) }),
  ]
  await own(released.blobId)
  let listed = 0
  bucket.fault((request) => (isList(request) && listed++, null))
  await blobs.giveUp(refused.blobId)
  await inTransaction(database.root, (tx) => blobs.release(tx, [released.blobId]))
  await blobs.idle()
  expect(things()).toEqual([])
  expect(listed).toBe(0)
})

test('a wrong key is refused by the bucket and not tried again', async () => {
  database = openSqlite()
  const location = { ...locationOf(bucket), secret: 'wrong' } as BlobLocation
  let asked = 0
  bucket.fault(() => (asked++, null))
  await expect(claimPlace(database.root, openBlobPlace(location, world), world)).rejects.toMatchObject({
    name: 'StorageError',
  })
  expect(asked).toBe(1)
})
