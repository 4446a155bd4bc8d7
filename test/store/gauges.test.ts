import { idFrom, type DeviceRef, type RunId } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { linkLimits } from '../../shared/device/limits.ts'
import type { KindCount } from '../../control-plane/gauges/store.ts'
import {
  countDeliveries,
  countDevicesByLink,
  countOpenApprovals,
  countOpenQuestions,
  countRunsByPhase,
  countWaitingWakes,
} from '../../control-plane/gauges/store.ts'
import { failDelivery, finishDelivery, insertDelivery } from '../../control-plane/github/delivery-store.ts'
import { insertApproval, findApproval, resolveApproval } from '../../control-plane/resources/approvals/store.ts'
import { markLinked, recordHeartbeats } from '../../control-plane/resources/devices/store.ts'
import { insertQuestion } from '../../control-plane/resources/questions/store.ts'
import { changeRun, claimRun, offerRuns } from '../../control-plane/run/change-store.ts'
import { onBoth } from '../kit/database.ts'
import { approvalRow, questionRow } from './hold-rows.ts'
import { at, seedAgent, seedDevice, seedPerson, seedRun, seedWorkspace } from './seed.ts'

const inOrder = (counted: readonly KindCount[]) => counted.toSorted((a, b) => (a.kind < b.kind ? -1 : 1))

onBoth('live runs are counted by phase with the first of each, and ended ones are not', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const ids: RunId[] = []
  for (let n = 0; n < 6; n++) ids.push((await seedRun(root, agent, { createdAt: at + n })).id)
  const device = idFrom<DeviceRef>('dvc_a')
  await offerRuns(root, { runIds: ids.slice(2, 5), device, at, expiresAt: at })
  for (const runId of ids.slice(3, 5)) await claimRun(root, { runId, fence: 1, device, at })
  await changeRun(root, ids[4]!, { type: 'cancel_asked', exitReason: 'interrupted', reason: null, at })
  await changeRun(root, ids[5]!, { type: 'cancelled', exitReason: 'interrupted', errorMessage: null, endedAt: at })
  expect(inOrder(await countRunsByPhase(root))).toEqual([
    { kind: 'offered', count: 1, oldestAt: at + 2 },
    { kind: 'running', count: 1, oldestAt: at + 3 },
    { kind: 'stopping', count: 1, oldestAt: at + 4 },
    { kind: 'waiting', count: 2, oldestAt: at },
  ])
})

onBoth('open approvals and questions are counted, and not those of a workspace that is removed', async ({ root }) => {
  const [here, gone] = [await seedWorkspace(root), await seedWorkspace(root)]
  await root('workspaces').where({ id: gone }).update({ removed_at: at })
  for (const workspaceId of [here, gone]) {
    await insertApproval(root, approvalRow(workspaceId, { createdAt: at + 2 }))
    await insertApproval(root, approvalRow(workspaceId, { createdAt: at + 1 }))
    await insertApproval(root, approvalRow(workspaceId, { trigger: 'budget_breach', createdAt: at + 3 }))
    const closed = await insertApproval(root, approvalRow(workspaceId, { trigger: 'platform_change' }))
    const resolution = { outcome: 'approve', reason: null, appliedScope: null, by: null, at } as const
    await resolveApproval(root, (await findApproval(root, workspaceId, closed))!, resolution)
    await insertQuestion(root, questionRow(workspaceId, { createdAt: at + 4 }))
  }
  expect(inOrder(await countOpenApprovals(root))).toEqual([
    { kind: 'budget_breach', count: 1, oldestAt: at + 3 },
    { kind: 'tool_permission', count: 2, oldestAt: at + 1 },
  ])
  expect(await countOpenQuestions(root)).toEqual([{ kind: 'open', count: 1, oldestAt: at + 4 }])
})

onBoth('nothing open is counted as none', async ({ root }) => {
  expect(await countOpenQuestions(root)).toEqual([{ kind: 'open', count: 0, oldestAt: null }])
  expect(await countWaitingWakes(root)).toEqual([{ kind: 'waiting', count: 0, oldestAt: null }])
  expect(await countRunsByPhase(root)).toEqual([])
})

onBoth('devices of people are counted by whether their link is held', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const personUuid = await seedPerson(root, workspaceId)
  const [now, leaseMs] = [at + linkLimits.retireMs + 10_000, 1_000]
  const device = (changes: Parameters<typeof seedDevice>[2] = {}) =>
    seedDevice(root, { workspaceId, personUuid }, changes)
  const link = async (deviceUuid: Awaited<ReturnType<typeof device>>['deviceUuid'], beat: number) => {
    const host = { hostname: 'h', platform: 'linux', version: '1' }
    const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
    await markLinked(root, { deviceUuid, replicaId: 'r', linkId: 'l', claimState, ...host, at: beat })
    await recordHeartbeats(root, [{ deviceUuid, at: beat }])
  }
  await link((await device()).deviceUuid, now - leaseMs)
  await link((await device()).deviceUuid, now - leaseMs - 1)
  await device({ at: now - 5 })
  // Never heard of since it was made, long ago.
  await device()
  await link((await device({ sandboxId: idFrom('sbx_1') })).deviceUuid, now)
  const removed = await device()
  await link(removed.deviceUuid, now)
  await root('devices').where({ device_id: removed.deviceUuid }).update({ removed_at: now })
  expect(inOrder(await countDevicesByLink(root, { now, leaseMs })).map(({ kind, count }) => [kind, count])).toEqual([
    ['linked', 1],
    ['not_linked', 2],
    ['retired', 1],
  ])
})

onBoth('wakes that wait are counted, and deliveries that wait or were given up', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  for (const [n, state] of ['waiting', 'done', 'waiting'].entries())
    await root('wakes').insert({
      id: `wak_${n}`,
      workspace_id: workspaceId,
      agent_id: agent.id,
      trigger_source: 'manual',
      prompt: '',
      allow_calls: '[]',
      state,
      created_at: at + n,
    })
  expect(await countWaitingWakes(root)).toEqual([{ kind: 'waiting', count: 2, oldestAt: at }])
  const happening = { kind: 'status', repo: 'acme/web', sha: 'a'.repeat(40) } as never
  for (const id of ['a', 'b', 'c']) await insertDelivery(root, { id, happening, at })
  await finishDelivery(root, 'b')
  await failDelivery(root, 'c', { trouble: 'x', dueAt: null })
  expect(inOrder(await countDeliveries(root)).map(({ kind, count }) => [kind, count])).toEqual([
    ['failed', 1],
    ['waiting', 1],
  ])
})
