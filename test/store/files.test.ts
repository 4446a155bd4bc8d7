import { idFrom, type FileId, type PersonRef } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  findFileRelation,
  insertFileRelation,
  listFileRelations,
  removeFileRelation,
  removeFileRelations,
} from '../../control-plane/resources/files/own/relation-store.ts'
import {
  findFileRevision,
  findRevisionNumber,
  forgetBlob,
  insertFileRevision,
  listBlobsOfFile,
  listFileRevisions,
  removeFileRevisions,
} from '../../control-plane/resources/files/revision-store.ts'
import {
  countFiles,
  findFile,
  findFileById,
  listDeletedBefore,
  listFiles,
  listFilesByIds,
  removeFile,
  replaceFile,
} from '../../control-plane/resources/files/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { revisionRow, seedFile } from './file-rows.ts'
import { at, seedWorkspace } from './seed.ts'

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

onBoth('a file is found in its workspace, changed once, and removed as it was read', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const file = await seedFile(root, workspaceId)
  expect(await findFile(root, workspaceId, file.id)).toEqual(file)
  expect(await findFile(root, await seedWorkspace(root), file.id)).toBeNull()
  expect(await findFileById(root, file.id)).toEqual(file)
  await replaceFile(root, file, { ...file, name: 'other.txt', deletedAt: at + 5 })
  await expect(replaceFile(root, file, { ...file, name: 'third.txt' })).rejects.toMatchObject({
    code: 'transient_conflict',
  })
  expect(idsOf(await listDeletedBefore(root, at + 6, 10))).toEqual([file.id])
  expect(await listDeletedBefore(root, at + 5, 10)).toEqual([])
  await removeFileRevisions(root, file.id)
  expect(await removeFile(root, file)).toBe(false)
  expect(await removeFile(root, { id: file.id, version: 2 })).toBe(true)
  expect(await findFileById(root, file.id)).toBeNull()
})

onBoth('files are listed newest first to whoever sees them', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const open = await seedFile(root, workspaceId, { name: 'Über_50%.txt' })
  const mine = await seedFile(root, workspaceId, {
    visibility: 'private',
    ownerRef: idFrom<PersonRef>('usr_me'),
    createdAt: at + 1,
    description: 'My plan',
  })
  const ofAgent = await seedFile(root, workspaceId, {
    visibility: 'private',
    ownerRef: null,
    createdByType: 'agent',
    createdByRef: idFrom('agt_one'),
    createdAt: at + 2,
  })
  const gone = await seedFile(root, workspaceId, { deletedAt: at + 9, createdAt: at + 3 })
  await seedFile(root, await seedWorkspace(root))
  const seenBy = async (visibleTo: Parameters<typeof listFiles>[1]['visibleTo'], more: object = {}) =>
    idsOf(await listFiles(root, { workspaceId, visibleTo, limit: 10, ...more }))
  expect(await seenBy(null)).toEqual([ofAgent.id, mine.id, open.id])
  const { sizeBytes } = (await findFile(root, workspaceId, open.id))!
  expect(await countFiles(root, { workspaceId, visibleTo: null })).toEqual({ count: 3, bytes: 3 * sizeBytes })
  expect((await countFiles(root, { workspaceId, visibleTo: { type: 'user', id: idFrom('usr_other') } })).count).toBe(1)
  expect(await countFiles(root, { workspaceId: idFrom('none'), visibleTo: null })).toEqual({ count: 0, bytes: 0 })
  expect(await seenBy({ type: 'user', id: idFrom('usr_me') })).toEqual([mine.id, open.id])
  expect(await seenBy({ type: 'user', id: idFrom('usr_other') })).toEqual([open.id])
  expect(await seenBy({ type: 'agent', id: idFrom('agt_one') })).toEqual([ofAgent.id, open.id])
  expect(await seenBy({ type: 'agent', id: idFrom('usr_me') })).toEqual([open.id])
  expect(await seenBy(null, { isDeleted: true })).toEqual([gone.id])
  expect(await seenBy(null, { q: 'PLAN' })).toEqual([mine.id])
  expect(await seenBy(null, { q: '_50%' })).toEqual([open.id])
  expect(await seenBy(null, { before: { createdAt: at + 1, id: mine.id } })).toEqual([open.id])
  expect(await seenBy(null, { limit: 1 })).toEqual([ofAgent.id, mine.id])
  const ids = [open.id, mine.id, gone.id, idFrom<FileId>('file_0000000000000000')]
  const visibleTo = { type: 'user' as const, id: idFrom<PersonRef>('usr_other') }
  expect(idsOf(await listFilesByIds(root, { workspaceId, ids, visibleTo }))).toEqual([open.id])
  expect(await listFilesByIds(root, { workspaceId, ids: [], visibleTo: null })).toEqual([])
})

onBoth('versions are numbered, listed newest first, and lose their bytes one by one', async ({ root }) => {
  const file = await seedFile(root, await seedWorkspace(root))
  const [second, third] = [revisionRow(file.id, 2), revisionRow(file.id, 3)]
  await insertFileRevision(root, second)
  await insertFileRevision(root, third)
  await expect(insertFileRevision(root, revisionRow(file.id, 3))).rejects.toThrow(/unique/i)
  expect(await findRevisionNumber(root, file.id, 2)).toEqual(second)
  expect(await findFileRevision(root, file.id, third.id)).toEqual(third)
  expect(await findFileRevision(root, idFrom('file_0000000000000000'), third.id)).toBeNull()
  const numbers = async (below: number | null, limit = 10) =>
    (await listFileRevisions(root, { fileId: file.id, below, limit })).map(({ number }) => number)
  expect(await numbers(null)).toEqual([3, 2, 1])
  expect(await numbers(3)).toEqual([2, 1])
  expect(await numbers(null, 1)).toEqual([3, 2])
  await forgetBlob(root, file.id, third.blobId!)
  expect(new Set(await listBlobsOfFile(root, file.id))).toEqual(new Set([file.blobId, second.blobId]))
  await removeFileRevisions(root, file.id)
  expect(await numbers(null)).toEqual([])
})

onBoth('a file has each relation once, and is found by it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const file = await seedFile(root, workspaceId)
  const other = await seedFile(root, workspaceId)
  const relate = (role: string, fileId = file.id, createdAt = at) => ({
    id: realWorld.uuid(),
    fileId,
    entityType: 'task' as const,
    entityId: 'tsk_one',
    role,
    createdAt,
  })
  const [spec, attachment] = [relate('spec'), relate('attachment', file.id, at + 1)]
  expect(await insertFileRelation(root, spec)).toBe(true)
  expect(await insertFileRelation(root, relate('spec'))).toBe(false)
  expect(await insertFileRelation(root, attachment)).toBe(true)
  expect(await findFileRelation(root, file.id, spec.id)).toEqual(spec)
  expect(await findFileRelation(root, other.id, spec.id)).toBeNull()
  expect(await listFileRelations(root, { fileId: file.id, limit: 10 })).toEqual([attachment, spec])
  const before = { createdAt: at + 1, id: attachment.id }
  expect(await listFileRelations(root, { fileId: file.id, before, limit: 10 })).toEqual([spec])
  const ofEntity = async (entityId: string) =>
    idsOf(await listFiles(root, { workspaceId, visibleTo: null, entity: { entityType: 'task', entityId }, limit: 10 }))
  expect(await ofEntity('tsk_one')).toEqual([file.id])
  expect(await ofEntity('tsk_two')).toEqual([])
  expect(await removeFileRelation(root, other.id, spec.id)).toBe(false)
  expect(await removeFileRelation(root, file.id, spec.id)).toBe(true)
  await removeFileRelations(root, file.id)
  expect(await listFileRelations(root, { fileId: file.id, limit: 10 })).toEqual([])
})
