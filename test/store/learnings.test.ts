import { expect } from 'vitest'
import {
  countLearnings,
  findLearning,
  findLearningOfApproval,
  insertLearning,
  listLearnings,
  replaceLearning,
} from '../../control-plane/resources/learnings/store.ts'
import { onBoth } from '../kit/database.ts'
import { learningRow } from './learning-rows.ts'
import { at, seedWorkspace } from './seed.ts'

onBoth(
  'a learning comes back as it was stored, and is replaced only from the version that was read',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const stored = learningRow(workspaceId, {
      conversationId: 'cnv_1',
      agentId: 'agt_1',
      runId: 'run_1',
      taskId: 'tsk_1',
    })
    await insertLearning(root, stored)
    expect(await findLearning(root, workspaceId, stored.id)).toEqual(stored)
    expect(await findLearning(root, await seedWorkspace(root), stored.id)).toBeNull()
    expect(await findLearningOfApproval(root, stored.approvalId)).toEqual(stored)
    expect(await findLearningOfApproval(root, 'apr_x')).toBeNull()
    const after = { ...stored, status: 'rejected', rejectedReason: 'No.', updatedAt: at + 1 } as const
    await replaceLearning(root, stored, after)
    expect(await findLearning(root, workspaceId, stored.id)).toEqual({ ...after, version: 2 })
    await expect(replaceLearning(root, stored, after)).rejects.toMatchObject({ code: 'transient_conflict' })
  },
)

onBoth('learnings are listed by each filter, newest first, also by tags that were changed', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const rows = [
    learningRow(workspaceId, { createdAt: at + 1, entities: [{ type: 'tool', name: 'make' }] }),
    learningRow(workspaceId, { createdAt: at + 2, status: 'accepted', conversationId: 'cnv_1', entities: [] }),
    learningRow(workspaceId, {
      createdAt: at + 3,
      entities: [
        { type: 'tool', name: 'git' },
        { type: 'team', name: 'make' },
      ],
    }),
  ]
  for (const row of [...rows, learningRow(await seedWorkspace(root))]) await insertLearning(root, row)
  const listed = async (filter: object) =>
    (await listLearnings(root, { workspaceId, limit: 25, ...filter })).map(({ id }) =>
      rows.findIndex((row) => row.id === id),
    )
  expect(await listed({})).toEqual([2, 1, 0])
  expect(await listed({ before: rows[2] })).toEqual([1, 0])
  expect(await listed({ limit: 1 })).toEqual([2, 1])
  expect(await listed({ status: 'accepted' })).toEqual([1])
  expect(await listed({ conversationId: 'cnv_1' })).toEqual([1])
  expect(await listed({ approvalId: rows[0]!.approvalId })).toEqual([0])
  expect(await listed({ entityName: 'make' })).toEqual([2, 0])
  expect(await listed({ entityType: 'tool', entityName: 'make' })).toEqual([0])
  await replaceLearning(root, rows[0]!, { ...rows[0]!, entities: [{ type: 'team', name: 'make' }] })
  expect(await listed({ entityType: 'tool' })).toEqual([2])
  expect(await listed({ entityType: 'team', entityName: 'make' })).toEqual([2, 0])
  expect(await countLearnings(root, { workspaceId, status: 'proposed' })).toBe(2)
})
