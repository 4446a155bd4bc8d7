import { idFrom, type DeviceRef } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  findCircuit,
  listCircuits,
  findQuotaUse,
  listQuotaUses,
  listWorkspacesWithTrial,
  removeCircuitsBefore,
  removeQuotaUsesBefore,
  replaceCircuit,
  replaceQuotaUse,
} from '../../control-plane/resources/quotas/store.ts'
import { listEnded } from '../../control-plane/resources/runs/ended-store.ts'
import { loadOccupancy } from '../../control-plane/resources/runs/live-store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace } from './seed.ts'
import { endRun } from '../kit/end-run.ts'

onBoth('a breaker is one for each provider and device, and is seen until its trial is over', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const of = { workspaceId, device: idFrom<DeviceRef>('dvc_a'), provider: 'opencode/openai' }
  expect(await findCircuit(root, of)).toBeNull()
  await replaceCircuit(root, { ...of, times: 1, openedAt: at, openUntil: at + 10 })
  await replaceCircuit(root, { ...of, provider: 'claude', times: 1, openedAt: at, openUntil: at + 5 })
  const again = { ...of, times: 2, openedAt: at + 20, openUntil: at + 40 }
  await replaceCircuit(root, again)
  expect(await findCircuit(root, of)).toEqual(again)
  const seen = async (triedSince: number) => {
    const { circuits } = await loadOccupancy(root, {
      workspaceId,
      pausedSince: at,
      resetSince: at,
      triedSince,
    })
    return circuits.map(({ provider, openUntil }) => `${provider} ${openUntil - at}`).toSorted()
  }
  expect(await seen(at)).toEqual(['claude 5', 'opencode/openai 40'])
  expect(await seen(at + 5)).toEqual(['opencode/openai 40'])
  expect(await listCircuits(root, workspaceId, at + 4)).toMatchObject([{ provider: 'claude' }, again])
  expect(await listCircuits(root, workspaceId, at + 5)).toEqual([again])
  expect(await listCircuits(root, await seedWorkspace(root), at)).toEqual([])
  expect(await listWorkspacesWithTrial(root, at + 4, at + 40)).toEqual([workspaceId])
  expect(await listWorkspacesWithTrial(root, at + 5, at + 39)).toEqual([])
  await removeCircuitsBefore(root, at + 40)
  expect(await seen(at)).toEqual(['opencode/openai 40'])
})

onBoth('runs that ended tell whether their provider failed', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const [old, failed, live] = [
    await seedRun(root, agent, { createdAt: at }),
    await seedRun(root, agent, { createdAt: at + 1 }),
    await seedRun(root, agent, { createdAt: at + 2 }),
  ]
  const ending = { fence: null, exitReason: 'error', errorMessage: null, at: at + 9 } as const
  for (const { id: runId } of [old, failed])
    await endRun(root, { ...ending, runId, providerFailed: runId === failed.id })
  const ended = await listEnded(root, { workspaceId: agent.workspaceId, since: at - 1 })
  expect(ended.map(({ providerFailed, endedAt }) => [providerFailed, endedAt])).toEqual([
    [true, at + 9],
    [null, at + 9],
  ])
  expect(await listEnded(root, { workspaceId: agent.workspaceId, since: at + 1 })).toEqual([])
  expect(live.createdAt).toBe(at + 2)
})

onBoth(
  'how much of its limits an account has used is kept as it was told last, until all of it is over',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const tell = (toldAt: number, usedPercent: number) =>
      replaceQuotaUse(root, {
        workspaceId,
        account: 'claude/dvc_a',
        used: [{ windowMinutes: 300, models: null, usedPercent, resetsAt: at + 50 }],
        toldAt,
        trueUntil: at + 50,
      })
    const seen = async (now: number) =>
      (await listQuotaUses(root, workspaceId, now)).map(({ used }) => used[0]!.usedPercent)
    await tell(at + 1, 30)
    await tell(at + 3, 60)
    await tell(at + 2, 40)
    expect(await seen(at + 49)).toEqual([60])
    const of = { workspaceId, account: 'claude/dvc_a' }
    expect((await findQuotaUse(root, of))?.toldAt).toBe(at + 3)
    expect(await findQuotaUse(root, { ...of, account: 'claude/dvc_b' })).toBeNull()
    expect(await seen(at + 50)).toEqual([])
    expect(await listQuotaUses(root, await seedWorkspace(root), at)).toEqual([])
    await removeQuotaUsesBefore(root, at + 50)
    expect(await seen(at)).toEqual([60])
    await removeQuotaUsesBefore(root, at + 51)
    expect(await seen(at)).toEqual([])
  },
)
