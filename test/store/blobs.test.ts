import { idFrom, type BlobId } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  findBlob,
  giveUpBlob,
  insertBlob,
  listOwnedBlobs,
  listReleased,
  listReleasedOf,
  noteUpload,
  ownBlob,
  postponeRemoval,
  releaseBlobs,
  releaseForgotten,
  removeBlob,
} from '../../control-plane/blobs/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { listStoredBytes } from '../../control-plane/operator/files.ts'
import { totalOf } from '../../control-plane/resources/skills/bundle.ts'
import { seedFile } from './file-rows.ts'
import { at, seedWorkspace } from './seed.ts'
import { seedBundle } from './skill-rows.ts'

async function seedBlob(db: Db, { workspaceId = realWorld.uuid(), createdAt = at } = {}): Promise<string> {
  const id = realWorld.id('blb_')
  await insertBlob(db, { id, workspaceId: idFrom(workspaceId), createdAt })
  return id
}
const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

onBoth('a blob is owned once, and never after it was given up', async ({ root }) => {
  const [owned, lost] = [await seedBlob(root), await seedBlob(root)]
  await ownBlob(root, idFrom(owned), at + 1)
  await expect(ownBlob(root, idFrom(owned), at + 2)).rejects.toMatchObject({ code: 'transient_conflict' })
  expect(await giveUpBlob(root, idFrom(owned), at + 3)).toMatchObject({ ownedAt: at + 1, releasedAt: null })
  expect(await giveUpBlob(root, idFrom(lost), at + 3)).toMatchObject({ ownedAt: null, releasedAt: at + 3 })
  await expect(ownBlob(root, idFrom(lost), at + 4)).rejects.toMatchObject({ code: 'transient_conflict' })
  expect(await giveUpBlob(root, idFrom('blb_0000000000000000'), at)).toBeNull()
})

onBoth('what is intended for an hour is released, what is owned stays', async ({ root }) => {
  const [old, owned, young] = [
    await seedBlob(root),
    await seedBlob(root),
    await seedBlob(root, { createdAt: at + 100 }),
  ]
  await ownBlob(root, idFrom(owned), at + 1)
  expect(await releaseForgotten(root, at + 100, at + 200)).toBe(1)
  expect(await releaseForgotten(root, at + 100, at + 300)).toBe(0)
  expect(await listReleased(root, 10)).toMatchObject([{ id: old, releasedAt: at + 200 }])
  expect(idsOf(await listReleasedOf(root, [old, owned, young]))).toEqual([old])
})

onBoth(
  'the blobs of a file with more versions than a statement takes values are released all the same',
  async ({ root }) => {
    const [first, last] = [await seedBlob(root), await seedBlob(root)]
    const ids = [
      idFrom<BlobId>(first),
      ...Array.from({ length: 33_000 }, (_, n) => idFrom<BlobId>(`blb_${n}`)),
      idFrom<BlobId>(last),
    ]
    await releaseBlobs(root, ids, at + 1)
    expect(idsOf(await listReleasedOf(root, ids)).toSorted()).toEqual([first, last].toSorted())
  },
)

onBoth('released blobs are listed longest released first, and removed', async ({ root }) => {
  const [first, second, other] = [await seedBlob(root), await seedBlob(root), await seedBlob(root)]
  await noteUpload(root, idFrom(first), 'upload-1')
  await ownBlob(root, idFrom(first), at)
  await releaseBlobs(root, [idFrom(first)], at + 1)
  await releaseBlobs(root, [idFrom(first), idFrom(second)], at + 2)
  expect(await listReleased(root, 10)).toMatchObject([
    { id: first, upload: 'upload-1', releasedAt: at + 1 },
    { id: second, upload: null, releasedAt: at + 2 },
  ])
  expect(idsOf(await listReleased(root, 1))).toEqual([first])
  await postponeRemoval(root, idFrom(first), at + 9)
  await postponeRemoval(root, idFrom(other), at + 9)
  expect(idsOf(await listReleased(root, 10))).toEqual([second, first])
  await removeBlob(root, idFrom(second))
  await removeBlob(root, idFrom(other))
  expect(idsOf(await listReleased(root, 10))).toEqual([first])
  expect(await giveUpBlob(root, idFrom(other), at)).not.toBeNull()
})

onBoth('owned blobs are listed by their ids, in pages', async ({ root }) => {
  const owned = [await seedBlob(root), await seedBlob(root), await seedBlob(root)].toSorted()
  for (const id of owned) await ownBlob(root, idFrom(id), at)
  await seedBlob(root)
  const [gone] = [await seedBlob(root)]
  await ownBlob(root, idFrom(gone), at)
  await releaseBlobs(root, [idFrom<BlobId>(gone)], at + 1)
  const first = await listOwnedBlobs(root, { after: '', limit: 2 })
  expect([...first, ...(await listOwnedBlobs(root, { after: first[1]!, limit: 2 }))]).toEqual(owned)
  expect(await findBlob(root, idFrom(gone))).toMatchObject({ releasedAt: at + 1 })
  expect(await findBlob(root, idFrom('blb_0000000000000000'))).toBeNull()
})

onBoth('what was stored is known of the blobs of versions and of skills', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const { blobId, sha256 } = await seedFile(root, workspaceId)
  await seedFile(root, workspaceId)
  const bundle = await seedBundle(root, workspaceId)
  const ids = [blobId!, bundle.blobId, realWorld.id('blb_')]
  expect([...(await listStoredBytes(root, ids))]).toEqual([
    [blobId, { sizeBytes: 11, sha256 }],
    [bundle.blobId, { sizeBytes: totalOf(bundle.files), sha256: null }],
  ])
})
