import { expect } from 'vitest'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import {
  claimCancellation,
  insertCancellation,
  isToBeCancelled,
  listCancellations,
  listToCancel,
  recordSeen,
  removeCancellation,
  type RunCancellation,
} from '../../control-plane/resources/runs/cancellation-store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace } from './seed.ts'

onBoth('a cancellation means the runs of its subject that wait, from the last one seen on', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
  const seeded = async (of: typeof agent, createdAt: number) => (await seedRun(root, of, { createdAt })).id
  const [first, second] = [await seeded(agent, at), await seeded(agent, at + 1)]
  const [later, foreign] = [await seeded(agent, at + 10), await seeded(other, at)]
  const cancellation: RunCancellation = {
    id: 'can_1',
    workspaceId,
    subject: 'agent',
    subjectId: agent.id,
    extent: 'waiting',
    exitReason: 'company_paused',
    reason: null,
    seenAt: 0,
    seenId: '',
    createdAt: at + 5,
  }
  expect(await isToBeCancelled(root, first)).toBe(false)
  await insertCancellation(root, cancellation)
  await insertCancellation(root, {
    ...cancellation,
    id: 'can_0',
    subject: 'person',
    subjectId: 'nobody',
    createdAt: at,
  })
  expect((await listCancellations(root, 10)).map(({ id }) => id)).toEqual(['can_0', 'can_1'])
  expect(await listCancellations(root, 1)).toHaveLength(1)
  for (const [run, is] of [
    [first, true],
    [second, true],
    [later, false],
    [foreign, false],
  ] as const)
    expect([run, await isToBeCancelled(root, run)]).toEqual([run, is])
  const ids = async (of: RunCancellation) => (await listToCancel(root, of, 10)).map(({ id }) => id)
  expect(await ids(cancellation)).toEqual([first, second])
  const seen = (await findRun(root, first))!
  await inTransaction(root, async (tx) => {
    expect(await claimCancellation(tx, 'can_1')).toEqual(cancellation)
    await recordSeen(tx, 'can_1', seen)
  })
  const [, after] = await listCancellations(root, 10)
  expect(after).toEqual({ ...cancellation, seenAt: at, seenId: first })
  expect(await ids(after!)).toEqual([second])
  await removeCancellation(root, 'can_1')
  expect(await claimCancellation(root, 'can_1')).toBeNull()
  expect(await isToBeCancelled(root, second)).toBe(false)
})
