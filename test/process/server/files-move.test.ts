import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Blobs } from '../../../control-plane/blobs/blobs.ts'
import { claimPlace } from '../../../control-plane/blobs/claim-place.ts'
import {
  openBlobPlace,
  openBlobPlaces,
  readLocation,
  type BlobLocation,
} from '../../../control-plane/blobs/location.ts'
import { moveBlobs } from '../../../control-plane/blobs/move.ts'
import { StorageError, type BlobPlace } from '../../../control-plane/blobs/place.ts'
import { ownBlob } from '../../../control-plane/blobs/store.ts'
import { inTransaction } from '../../../control-plane/db/transaction.ts'
import type { Database } from '../../../control-plane/db/open.ts'
import { listStoredBytes, moveFiles } from '../../../control-plane/operator/files.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import type { BlobId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { idFrom } from '../../../shared/lib/ids.ts'
import { seedFile } from '../../store/file-rows.ts'
import { seedWorkspace } from '../../store/seed.ts'
import { openSqlite } from '../../kit/database.ts'
import { movableWorld } from '../../kit/server.ts'
import { startS3, type S3Bucket } from '../../kit/s3.ts'

// Files that move between a folder and a bucket, while servers use both.

const workspaceId = idFrom<WorkspaceUuid>('00000000-0000-4000-8000-000000000001')
const world = { ...movableWorld(), sleep: () => Promise.resolve() }

let folder: string
let bucket: S3Bucket
let count = 0
let database: Database
let places: { disk: BlobLocation; s3: BlobLocation }

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-move-'))
  bucket = await startS3(join(folder, 's3'))
})
afterAll(async () => {
  await bucket.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  database = openSqlite()
  const { AWS_ACCESS_KEY_ID: keyId, AWS_SECRET_ACCESS_KEY: secret } = bucket.environment
  const url = bucket.url.replace('/test?', `/test${++count}?`)
  const disk: BlobLocation = { kind: 'disk', folder: join(folder, `disk${count}`) }
  places = { disk, s3: readLocation(url, { keyId, secret }) as BlobLocation }
})
afterEach(async () => {
  bucket.fault(null)
  await database.close()
})

/** What a server has that stores files in these places. */
async function served(files: BlobLocation, otherFiles: BlobLocation | null = null) {
  const { root } = database
  const place = openBlobPlaces({ files, otherFiles }, world)
  await claimPlace(root, place, world)
  const blobs = new Blobs({ root, place, world, log: silentLog })
  return {
    blobs,
    async store(text: string): Promise<BlobId> {
      const { blobId } = await blobs.put(piecesOf(text), { workspaceId })
      await ownBlob(root, blobId, world.now())
      return blobId
    },
    read: async (id: BlobId) => (await (await blobs.open(id)).toArray()).join(''),
  }
}

async function* piecesOf(text: string) {
  yield Buffer.from(text)
}

const listKnown = (ids: readonly BlobId[]) => listStoredBytes(database.root, ids)

const move = (from: BlobLocation, to: BlobLocation) =>
  moveBlobs(database.root, { from: openBlobPlace(from, world), to: openBlobPlace(to, world), listKnown })

test.each([
  ['a folder', 'disk', 's3'],
  ['a bucket', 's3', 'disk'],
] as const)('files of %s move to the other, and are read all the time', async (_, from, to) => {
  const before = await served(places[from])
  const texts = new Map<BlobId, string>()
  for (let n = 0; n < 5; n++) texts.set(await before.store(`text ${n}`), `text ${n}`)
  // Step by step: servers that look in the new place, then those that store there, side by side.
  const [ready, changed] = [await served(places[from], places[to]), await served(places[to], places[from])]
  for (const [each, text] of [
    [ready, 'ready'],
    [changed, 'changed'],
  ] as const)
    texts.set(await each.store(text), text)
  const readAll = async (server: typeof before) => {
    for (const [id, text] of texts) expect(await server.read(id)).toBe(text)
  }
  for (const server of [ready, changed]) await readAll(server)

  expect(await move(places[from], places[to])).toEqual({ moved: 6, movedBytes: 35, there: 1, missing: [], damaged: [] })
  for (const server of [ready, changed, await served(places[to])]) await readAll(server)
  // Nothing is removed, and a second time there is nothing to do.
  for (const [id, text] of texts) if (text !== 'changed') expect(await before.read(id)).toBe(text)
  expect(await move(places[from], places[to])).toEqual({ moved: 0, movedBytes: 0, there: 7, missing: [], damaged: [] })
})

test('a removed file goes from both places', async () => {
  const before = await served(places.disk)
  const id = await before.store('text')
  await move(places.disk, places.s3)
  const { blobs } = await served(places.s3, places.disk)
  await inTransaction(database.root, (tx) => blobs.release(tx, [id]))
  await blobs.idle()
  for (const place of [places.disk, places.s3]) {
    const { blobs: left } = await served(place)
    expect(await left.has(id)).toBe(false)
  }
})

test('one that fails in the middle goes on where it was', async () => {
  const before = await served(places.disk)
  const ids: BlobId[] = []
  for (let n = 0; n < 6; n++) ids.push(await before.store(`text ${n}`))
  let puts = 0
  bucket.fault(({ method, url }) => (method === 'PUT' && url?.includes('blb_') === true && ++puts > 3 ? 'cut' : null))
  await expect(move(places.disk, places.s3)).rejects.toThrow('the storage of files')
  bucket.fault(null)
  const after = await served(places.s3, places.disk)
  for (const [n, id] of ids.entries()) expect(await after.read(id)).toBe(`text ${n}`)
  expect(await move(places.disk, places.s3)).toEqual({ moved: 3, movedBytes: 18, there: 3, missing: [], damaged: [] })
})

test('a target that does not answer, or is none, is told, and so is a source without the files', async () => {
  const before = await served(places.disk)
  await before.store('text')
  bucket.fault(() => 503)
  const config = { files: places.s3, otherFiles: places.disk }
  await expect(moveFiles(database.root, config, world)).rejects.toThrow(/^Not all files are moved: .*Type it again/)
  bucket.fault(null)
  await expect(moveFiles(database.root, { ...config, otherFiles: null }, world)).rejects.toThrow('SVC_FILES_OTHER_URL')
  const empty: BlobLocation = { kind: 'disk', folder: join(folder, 'empty') }
  await expect(moveFiles(database.root, { ...config, otherFiles: empty }, world)).rejects.toThrow('are not there')
  // Nor does a server start that has neither place.
  await expect(served(empty, { kind: 'disk', folder: join(folder, 'empty2') })).rejects.toThrow('are not in')
  expect(await moveFiles(database.root, config, world)).toMatchObject({
    moved: 1,
    from: expect.stringContaining('disk'),
  })
})

test('bytes that neither has are named', async () => {
  const before = await served(places.disk)
  const [id, other] = [await before.store('text'), await before.store('other')]
  await openBlobPlaceOf(places.disk).then((place) => place.remove({ id, upload: null, isWhole: true }))
  expect(await move(places.disk, places.s3)).toEqual({ moved: 1, movedBytes: 5, there: 0, missing: [id], damaged: [] })
  expect(await (await served(places.s3)).read(other)).toBe('other')
})

async function openBlobPlaceOf(location: BlobLocation): Promise<BlobPlace> {
  const place = openBlobPlace(location, world)
  await claimPlace(database.root, place, world)
  return place
}

test('a file that is removed while it is copied is in no place afterwards', async () => {
  const before = await served(places.disk)
  const id = await before.store('text')
  const to = openBlobPlace(places.s3, world)
  const { blobs } = await served(places.s3, places.disk)
  const slow = placeWith(to, async (blob, source) => {
    const pieces: Uint8Array[] = []
    for await (const piece of source) pieces.push(piece)
    await inTransaction(database.root, (tx) => blobs.release(tx, [id]))
    await blobs.idle()
    await to.put(blob, piecesOf(Buffer.concat(pieces).toString()))
  })
  const moved = await moveBlobs(database.root, { from: openBlobPlace(places.disk, world), to: slow, listKnown })
  expect(moved).toEqual({ moved: 0, movedBytes: 0, there: 0, missing: [], damaged: [] })
  expect(await to.has(id)).toBe(false)
  expect(await database.root('blobs')).toEqual([])
})

test('a copy that is not what was read is refused, and not left', async () => {
  const before = await served(places.disk)
  const id = await before.store('text')
  const to = openBlobPlace(places.s3, world)
  const spoiling = placeWith(to, (blob) => to.put(blob, piecesOf('next')))
  await expect(
    moveBlobs(database.root, { from: openBlobPlace(places.disk, world), to: spoiling, listKnown }),
  ).rejects.toThrow('is not what was read')
  expect(await to.has(id)).toBe(false)
})

test('bytes that are not those that were stored are told, and not copied, until the source gives the right ones', async () => {
  const before = await served(places.disk)
  const workspaceOf = await seedWorkspace(database.root)
  const ids: BlobId[] = []
  for (const text of ['first', 'second', 'third']) {
    const id = await before.store(text)
    const { id: fileId } = await seedFile(database.root, workspaceOf, { blobId: id })
    const sha256 = createHash('sha256').update(text).digest('hex')
    await database
      .root('file_revisions')
      .where({ file_id: fileId })
      .update({ blob_id: id, size_bytes: text.length, sha256 })
    ids.push(id)
  }
  const source = openBlobPlace(places.disk, world)
  const given = new Map([
    [ids[0], 'fir'],
    [ids[2], 'THIRD'],
  ])
  const lying: BlobPlace = {
    ...placeWith(source, (...of) => source.put(...of)),
    open: (id, ...of) => {
      const text = given.get(idFrom(id))
      return text === undefined ? source.open(id, ...of) : Promise.resolve(Readable.from(piecesOf(text)))
    },
  }
  const to = openBlobPlace(places.s3, world)
  const first = await moveBlobs(database.root, { from: lying, to, listKnown })
  expect(first).toMatchObject({ moved: 1, movedBytes: 6, there: 0, missing: [] })
  expect(new Set(first.damaged)).toEqual(new Set([ids[0], ids[2]]))
  expect(await to.has(ids[0]!)).toBe(false)
  expect(await move(places.disk, places.s3)).toMatchObject({ moved: 2, there: 1, damaged: [] })
  const after = await served(places.s3)
  expect(await Promise.all(ids.map((id) => after.read(id)))).toEqual(['first', 'second', 'third'])
})

test('a copy that nobody could read again is not left, since the next call would take it for whole', async () => {
  const before = await served(places.disk)
  const id = await before.store('text')
  const to = openBlobPlace(places.s3, world)
  const unread = {
    ...placeWith(to, (blob) => to.put(blob, piecesOf('next'))),
    open: () => Promise.reject(new StorageError(to.name, new Error('no answer'))),
  }
  const from = openBlobPlace(places.disk, world)
  await expect(moveBlobs(database.root, { from, to: unread, listKnown })).rejects.toThrow('no answer')
  expect(await to.has(id)).toBe(false)
  expect(await move(places.disk, places.s3)).toMatchObject({ moved: 1, there: 0 })
  expect(await (await served(places.s3)).read(id)).toBe('text')
})

/** The place with another way to store. */
const placeWith = (place: BlobPlace, put: BlobPlace['put']): BlobPlace => ({
  name: place.name,
  put,
  open: (...of) => place.open(...of),
  has: (id) => place.has(id),
  remove: (blob) => place.remove(blob),
  isMarked: (mark) => place.isMarked(mark),
  mark: (mark) => place.mark(mark),
  use: (mark) => place.use(mark),
})

test('a folder in which the copy cannot be written leaves all as it was', async () => {
  const before = await served(places.disk)
  await before.store('text')
  const full: BlobLocation = { kind: 'disk', folder: '/proc/nowhere' }
  await expect(move(places.disk, full)).rejects.toThrow('the storage of files')
  expect(readdirSync((places.disk as { folder: string }).folder)).toHaveLength(1)
})
