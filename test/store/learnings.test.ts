import {
  idFrom,
  type AgentRef,
  type ConversationId,
  type PersonRef,
  type PersonUuid,
  type RunId,
  type TaskId,
} from '../../shared/lib/ids.ts'
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { insertApproval } from '../../control-plane/resources/approvals/store.ts'
import {
  countLearnings,
  findLearning,
  findLearningOfApproval,
  insertLearning,
  listEntities,
  listLearnings,
  replaceEntities,
  replaceLearning,
  type LearningFilter,
} from '../../control-plane/resources/learnings/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { approvalRow } from './hold-rows.ts'
import { seedLearning } from './learning-rows.ts'
import { at, seedAgent, seedPerson, seedWorkspace } from './seed.ts'

onBoth('a learning comes back as it was stored, and is changed by one writer at a time', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seedLearning(root, workspaceId, {
    topic: 'Über',
    bullets: [
      { text: 'one', sources: ['https://a.example', 'pinework://task/WEB-1'] },
      { text: 'two', sources: ['https://b.example'] },
    ],
    agentRef: idFrom<AgentRef>('agt_1'),
    runId: idFrom<RunId>('run_1'),
    taskId: idFrom<TaskId>('tsk_1'),
    conversationId: idFrom<ConversationId>('cnv_1'),
  })
  expect(await findLearning(root, workspaceId, stored.id)).toEqual(stored)
  expect(await findLearning(root, await seedWorkspace(root), stored.id)).toBeNull()
  expect(await findLearningOfApproval(root, stored.approvalId)).toEqual(stored)
  expect(await findLearningOfApproval(root, idFrom('apr_0000000000000000'))).toBeNull()
  const again = { ...stored, id: realWorld.id('lrn_') }
  await expect(insertLearning(root, again)).rejects.toThrow(/unique/i)
  const rejected = { ...stored, status: 'rejected', rejectedReason: 'Old.', updatedAt: at + 1 } as const
  await replaceLearning(root, stored, rejected)
  expect(await findLearning(root, workspaceId, stored.id)).toEqual({ ...rejected, version: 2 })
  await expect(replaceLearning(root, stored, { ...stored, status: 'accepted' })).rejects.toMatchObject({
    code: 'transient_conflict',
  })
})

onBoth('what learnings are about is kept in its order, and found by it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [first, second] = [
    await seedLearning(root, workspaceId),
    await seedLearning(root, workspaceId, { createdAt: at + 1 }),
  ]
  const foreign = await seedLearning(root, await seedWorkspace(root))
  await replaceEntities(root, first, [{ type: 'tool', name: 'x' }])
  const both = [
    { type: 'repo', name: 'web' },
    { type: 'host', name: 'web' },
  ]
  await replaceEntities(root, first, both)
  await replaceEntities(root, second, [{ type: 'repo', name: 'app' }])
  await replaceEntities(root, foreign, both)
  expect(await listEntities(root, [first.id, second.id])).toEqual(
    new Map([
      [first.id, both],
      [second.id, [{ type: 'repo', name: 'app' }]],
    ]),
  )
  expect(await listEntities(root, [])).toEqual(new Map())
  const about = async (filter: Partial<LearningFilter>) =>
    (await listLearnings(root, { workspaceId, limit: 10, ...filter })).map(({ id }) => id)
  expect(await about({ entityType: 'repo' })).toEqual([second.id, first.id])
  expect(await about({ entityName: 'web' })).toEqual([first.id])
  expect(await about({ entityType: 'host', entityName: 'app' })).toEqual([])
  await replaceEntities(root, first, [])
  expect(await about({ entityName: 'web' })).toEqual([])
})

onBoth('learnings are listed newest first to whoever sees them', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const ownerUserId = await seedPerson(root, workspaceId)
  const hidden = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: ownerUserId })
  const open = await seedLearning(root, workspaceId, { conversationId: idFrom<ConversationId>('cnv_1') })
  const ofHidden = await seedLearning(root, workspaceId, { agentRef: hidden.id, createdAt: at + 1 })
  const accepted = await seedLearning(root, workspaceId, {
    agentRef: hidden.id,
    status: 'accepted',
    createdAt: at + 2,
  })
  await seedLearning(root, await seedWorkspace(root))
  const assigned = {
    id: ofHidden.approvalId,
    assignedType: 'user',
    assignedRef: idFrom<PersonRef>('usr_reviewer'),
  } as const
  await insertApproval(root, approvalRow(workspaceId, assigned))
  const seenBy = async (visibleTo: LearningFilter['visibleTo'], more: Partial<LearningFilter> = {}) => {
    const viewer = visibleTo === undefined ? {} : { visibleTo }
    const filter = { workspaceId, limit: 10, ...viewer, ...more }
    const ids = (await listLearnings(root, filter)).map(({ id }) => id)
    if (Object.keys(more).length === 0) expect(await countLearnings(root, filter)).toBe(ids.length)
    return ids
  }
  const all = [accepted.id, ofHidden.id, open.id]
  expect(await seenBy(undefined)).toEqual(all)
  const person = (userId: PersonUuid, userPublicId = 'usr_1') => ({
    personUuid: userId,
    personRef: idFrom<PersonRef>(userPublicId),
  })
  expect(await seenBy(person(ownerUserId))).toEqual(all)
  expect(await seenBy(person(idFrom('other')))).toEqual([accepted.id, open.id])
  expect(await seenBy(person(idFrom('other'), 'usr_reviewer'))).toEqual(all)
  expect(await seenBy({ agentRef: hidden.id, agentUuid: hidden.uuid })).toEqual(all)
  expect(await seenBy({ agentRef: idFrom('agt_other'), agentUuid: idFrom(randomUUID()) })).toEqual([
    accepted.id,
    open.id,
  ])
  expect(await seenBy(undefined, { status: 'proposed' })).toEqual([ofHidden.id, open.id])
  expect(await seenBy(undefined, { conversationId: idFrom('cnv_1') })).toEqual([open.id])
  expect(await seenBy(undefined, { approvalId: accepted.approvalId })).toEqual([accepted.id])
  expect(await seenBy(undefined, { before: { createdAt: at + 1, id: ofHidden.id } })).toEqual([open.id])
  expect(await seenBy(undefined, { limit: 1 })).toEqual([accepted.id, ofHidden.id])
})
