import { idFrom, type DeviceRef, type FolderRef, type RunId, type SecretId } from '../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import type { Db } from '../../control-plane/db/open.ts'
import {
  findWaiting,
  findOthersOfTask,
  listWaiting,
  listWaitingWorkspaces,
} from '../../control-plane/run/placement/waiting-store.ts'
import { insertFolder } from '../../control-plane/resources/folders/store.ts'
import { listSpecs } from '../../control-plane/resources/runs/details-store.ts'
import { listExpiredOffers } from '../../control-plane/resources/runs/lease-store.ts'
import { findRun, hasWorkedOn, lockRun } from '../../control-plane/resources/runs/store.ts'
import { insertSecret, insertSecretGrant } from '../../control-plane/resources/secrets/store.ts'
import { hasPostgres, onBoth, openPostgres } from '../kit/database.ts'
import { runSpecFixture } from '../kit/run-spec.ts'
import { at, seedAgent, seedPerson, seedRun, seedTask, seedWorkspace } from './seed.ts'
import { takeFallback } from '../../control-plane/run/offers/fallback.ts'
import { claimRun, claimRuns, offerRuns, changeRun } from '../../control-plane/run/change-store.ts'
import { endRun } from '../kit/end-run.ts'

const device = idFrom<DeviceRef>('dvc_a')
const offer = (db: Db, ...runIds: RunId[]) => offerRuns(db, { runIds, device, at, expiresAt: at + 10 })
const claim = (db: Db, runId: string, fence = 1) =>
  claimRun(db, { runId: idFrom(runId), fence, device, at: at + 5 }).then((run) => run !== null)
const idsOf = (runs: readonly { id: RunId }[]) => runs.map((run) => run.id)

onBoth('a run is offered, withdrawn, offered again and claimed once, under growing fences', async ({ root }) => {
  const { id } = await seedRun(root, await seedAgent(root, await seedWorkspace(root)))
  expect(await offer(root, id)).toEqual([{ runId: id, fence: 1 }])
  expect(await offer(root, id)).toEqual([])
  expect(await changeRun(root, id, { type: 'offer_withdrawn', fence: 9 })).toBe(false)
  expect(await changeRun(root, id, { type: 'offer_withdrawn', fence: 1 })).toBe(true)
  // A late answer to the offer that was withdrawn.
  expect(await claim(root, id)).toBe(false)
  expect(await offer(root, id)).toEqual([{ runId: id, fence: 2 }])
  expect(await claim(root, id, 1)).toBe(false)
  expect(await claimRun(root, { runId: id, fence: 2, device: idFrom('dvc_b'), at })).toBeNull()
  expect(await claim(root, id, 2)).toBe(true)
  expect(await claim(root, id, 2)).toBe(false)
  expect(await changeRun(root, id, { type: 'offer_withdrawn', fence: 2 })).toBe(false)
  expect(await findRun(root, id)).toMatchObject({
    status: 'running',
    leaseState: 'claimed',
    fence: 2,
    startedAt: at + 5,
  })
  const { device } = (await findRun(root, id))!
  await changeRun(root, id, { type: 'harness_started', fence: 2, device: idFrom('dvc_other'), at: at + 6 })
  await changeRun(root, id, { type: 'harness_started', fence: 1, device: device!, at: at + 6 })
  expect((await findRun(root, id))?.harnessStartedAt).toBeNull()
  await changeRun(root, id, { type: 'harness_started', fence: 2, device: device!, at: at + 6 })
  await changeRun(root, id, { type: 'harness_started', fence: 2, device: device!, at: at + 7 })
  expect((await findRun(root, id))?.harnessStartedAt).toBe(at + 6)
})

onBoth('an agent has worked on a task once a harness of its began there', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
  const task = await seedTask(root, workspaceId)
  const { id } = await seedRun(root, agent, { taskId: task.id })
  await offer(root, id)
  await claim(root, id)
  const of = { agentRef: agent.id, taskId: task.id }
  expect(await hasWorkedOn(root, of)).toBe(false)
  await changeRun(root, id, { type: 'harness_started', fence: 1, device, at: at + 6 })
  expect(await hasWorkedOn(root, of)).toBe(true)
  expect(await hasWorkedOn(root, { ...of, agentRef: other.id })).toBe(false)
  expect(await hasWorkedOn(root, { ...of, taskId: idFrom('tsk_0000000000000000') })).toBe(false)
})

onBoth('a run is claimed with what its start needs; alone only when it works on no task', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const task = await seedTask(root, workspaceId)
  const [lone, ofTask] = [await seedRun(root, agent), await seedRun(root, agent, { taskId: task.id })]
  const by = { fence: 1, device, at: at + 5 }
  // Nobody was offered it yet.
  expect(await claimRun(root, { isLone: true, runId: lone.id, ...by })).toBeNull()
  await offer(root, lone.id)
  await offer(root, ofTask.id)
  expect(await claimRun(root, { isLone: true, runId: lone.id, ...by, device: idFrom('dvc_b') })).toBeNull()
  expect(await claimRun(root, { isLone: true, runId: lone.id, ...by, fence: 2 })).toBeNull()
  expect(await claimRun(root, { isLone: true, runId: lone.id, ...by })).toEqual({
    run: await findRun(root, lone.id),
    tokenGeneration: agent.tokenGeneration,
    hasSecrets: false,
  })
  expect(await findRun(root, lone.id)).toMatchObject({ status: 'running', leaseState: 'claimed', startedAt: at + 5 })
  expect(await claimRun(root, { isLone: true, runId: lone.id, ...by })).toBeNull()
  expect(await claimRun(root, { isLone: true, runId: ofTask.id, ...by })).toBeNull()
  expect((await findRun(root, ofTask.id))?.leaseState).toBe('offered')
  const sealed = Buffer.from('sealed')
  const secret = {
    id: idFrom<SecretId>('sec_1'),
    workspaceId,
    name: 'one',
    provider: null,
    envVarName: 'ONE',
    sealed,
    brokerHosts: [],
    isCloudPlain: false,
  }
  await insertSecret(root, { ...secret, createdByRef: idFrom('usr_1'), createdAt: at })
  await insertSecretGrant(root, {
    secretId: idFrom('sec_1'),
    agentRef: agent.id,
    workspaceId,
    grantedByRef: idFrom('usr_1'),
    createdAt: at,
  })
  expect(await claimRun(root, { runId: ofTask.id, ...by })).toMatchObject({ hasSecrets: true })
})

onBoth('many runs are offered at once, without those that somebody else was first with', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const runs = [await seedRun(root, agent), await seedRun(root, agent), await seedRun(root, agent)]
  const [first, ended, last] = idsOf(runs) as [RunId, RunId, RunId]
  const ending = { exitReason: 'interrupted', errorMessage: null, at } as const
  await endRun(root, { runId: ended, fence: null, ...ending })
  const offered = await offer(root, first, ended, last)
  expect(new Set(offered)).toEqual(new Set([first, last].map((runId) => ({ runId, fence: 1 }))))
  expect(await findRun(root, last)).toMatchObject({
    leaseState: 'offered',
    device,
    fence: 1,
    offerExpiresAt: at + 10,
  })
  expect(await offer(root, ...idsOf(runs))).toEqual([])
})

onBoth('offers whose time is up are found, until they are taken or withdrawn', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const [late, taken, back] = [await seedRun(root, agent), await seedRun(root, agent), await seedRun(root, agent)]
  await offer(root, late.id, taken.id, back.id)
  expect(await listExpiredOffers(root, at + 10, 10)).toEqual([])
  expect(await listExpiredOffers(root, at + 11, 10)).toHaveLength(3)
  expect(await listExpiredOffers(root, at + 11, 1)).toHaveLength(1)
  await claim(root, taken.id)
  await changeRun(root, back.id, { type: 'offer_withdrawn', fence: 1 })
  expect(await listExpiredOffers(root, at + 11, 10)).toEqual([{ runId: late.id, fence: 1 }])
})

onBoth('what waits is listed oldest first, page by page, with what its placement depends on', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const owner = await seedPerson(root, workspaceId)
  const agent = await seedAgent(root, workspaceId, { ownerUuid: owner, transferredAt: at })
  const [shortId, gone] = ['fs_1', 'fs_2']
  const folder = {
    workspaceId,
    device: idFrom<DeviceRef>('dvc_b'),
    displayName: 'site',
    createdByUuid: owner,
    createdAt: at,
  }
  await insertFolder(root, { ...folder, shortId: idFrom(shortId), rootPath: '/srv/site' })
  const parent = await seedRun(root, agent, { createdAt: at })
  await offer(root, parent.id)
  await claim(root, parent.id)
  const ending = { exitReason: 'completed', errorMessage: null, at, sessionId: 'ses' } as const
  await endRun(root, { runId: parent.id, fence: 1, ...ending })

  const caused = { causedByUuid: owner }
  const plain = await seedRun(root, agent, { createdAt: at + 2, ...caused })
  // It has the place of a run that was created before.
  const inFolder = await seedRun(root, agent, {
    createdAt: at + 9,
    inLineSince: at + 3,
    folderId: idFrom<FolderRef>(shortId),
    ...caused,
  })
  const resumed = await seedRun(root, agent, {
    createdAt: at + 4,
    ...caused,
    parentRunId: parent.id,
    folderId: idFrom<FolderRef>(gone),
  })
  const offered = await seedRun(root, agent, { createdAt: at + 1 })
  await offer(root, offered.id)
  const elsewhere = await seedRun(root, await seedAgent(root, await seedWorkspace(root)), { createdAt: at + 5 })

  const first = await listWaiting(root, { workspaceId, after: null, limit: 2 })
  expect(idsOf(first)).toEqual([plain.id, inFolder.id])
  const second = await listWaiting(root, { workspaceId, after: first.at(-1)!, limit: 2 })
  expect(idsOf(second)).toEqual([resumed.id])
  expect(await listWaiting(root, { workspaceId, after: second.at(-1)!, limit: 2 })).toEqual([])
  expect(new Set(await listWaitingWorkspaces(root))).toEqual(new Set([workspaceId, elsewhere.workspaceId]))
  expect(idsOf(await findWaiting(root, [inFolder.id, offered.id, plain.id, parent.id]))).toEqual(
    idsOf([plain, inFolder]),
  )
  const placed = {
    ownerUuid: owner,
    isOwnerAsked: true,
    isCauseGone: false,
    causedByUuid: owner,
    wordsBy: [],
    isConfidential: false,
    isOfPrivateAgent: false,
    waitsForOtherRun: false,
    ahead: [],
    isForSession: false,
    cloud: null,
  }
  const facts = {
    agentRef: agent.id,
    harness: plain.harness,
    keyId: null,
    provider: 'claude',
    fallback: null,
    ...placed,
  }
  expect(first[0]).toEqual({
    id: plain.id,
    workspaceId,
    taskId: null,
    createdAt: at + 2,
    inLineSince: at + 2,
    ungatedSince: null,
    facts: { ...facts, folderDevice: null, sessionDevice: null },
  })
  expect(first[1]!.facts).toEqual({ ...facts, folderDevice: 'dvc_b', sessionDevice: null })
  // A folder that is not there is no device's.
  expect(second[0]!.facts).toEqual({ ...facts, folderDevice: '', sessionDevice: device })
  await changeRun(root, plain.id, { type: 'gate_opened', at: at + 9 })
  expect((await findWaiting(root, [plain.id]))[0]!.ungatedSince).toBe(at + 9)
})

onBoth('a run waits for the others of its task that were first or are at work', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const taskId = (await seedTask(root, workspaceId)).id
  expect(await findOthersOfTask(root, taskId)).toEqual({ isTaken: false, ahead: [] })
  const first = await seedRun(root, agent, { taskId, createdAt: at })
  const second = await seedRun(root, agent, { taskId, createdAt: at + 1 })
  // Trust judges the two alike.
  expect(await findOthersOfTask(root, taskId)).toMatchObject({ isTaken: false, ahead: [{ agentRef: agent.id }] })
  const third = await seedRun(root, agent, { taskId, createdAt: at + 2 })
  const other = await seedRun(root, agent, { taskId: (await seedTask(root, workspaceId)).id, createdAt: at + 3 })
  const locked = async () => {
    const runs = await listWaiting(root, { workspaceId, after: null, limit: 10 })
    return runs.filter(({ facts }) => facts.waitsForOtherRun || facts.ahead.length > 0).map(({ id }) => id)
  }
  expect(await locked()).toEqual([second.id, third.id])
  await offer(root, first.id)
  expect(await findOthersOfTask(root, taskId)).toEqual({ isTaken: true, ahead: [] })
  expect(await locked()).toEqual([second.id, third.id])
  const ending = { exitReason: 'completed', errorMessage: null, at } as const
  await endRun(root, { runId: first.id, fence: null, ...ending })
  expect(await locked()).toEqual([third.id])
  await offer(root, third.id)
  expect(await locked()).toEqual([second.id])
  expect((await findWaiting(root, [other.id]))[0]!.facts.waitsForOtherRun).toBe(false)
})

onBoth('a run goes on its fallback harness once, with what it was given for that', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const fallback = {
    fallbackHarness: 'codex',
    fallbackKeyId: idFrom<SecretId>('sec_a'),
    fallbackModel: 'gpt-5',
  } as const
  const id = idFrom<RunId>('run_fallback')
  const spec = runSpecFixture(id)
  const fallbackSpec = { ...spec, harness: 'codex' as const, model: 'gpt-5', reasoningEffort: 'low' as const }
  const run = await seedRun(root, agent, { id, ...fallback, modelId: 'claude-opus-4-5' }, { spec, fallbackSpec })
  expect((await findWaiting(root, [run.id]))[0]!.facts.fallback).toEqual({
    harness: 'codex',
    keyId: 'sec_a',
    provider: 'codex',
  })
  await takeFallback(root, run.id)
  const onFallback = { harness: 'codex', modelId: 'gpt-5', reasoningEffort: 'low', providerKeyId: 'sec_a' }
  const taken = { ...onFallback, fallbackHarness: null, fallbackKeyId: null, fallbackModel: null }
  expect(await findRun(root, run.id)).toMatchObject(taken)
  expect((await listSpecs(root, [run.id])).get(run.id)).toEqual(fallbackSpec)
  await takeFallback(root, run.id)
  expect(await findRun(root, run.id)).toMatchObject(taken)
  const plain = await seedRun(root, agent)
  await takeFallback(root, plain.id)
  expect(await findRun(root, plain.id)).toMatchObject({ harness: plain.harness })
})

onBoth('what runs are started with is read together', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const runs = [await seedRun(root, agent), await seedRun(root, agent)]
  const specs = await listSpecs(root, [...idsOf(runs), idFrom('run_0000000000000000')])
  expect(specs).toEqual(new Map(idsOf(runs).map((runId) => [runId, runSpecFixture(runId)])))
})

onBoth('runs are claimed together, each under its own fence and device', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const other = idFrom<DeviceRef>('dvc_b')
  const ids = await Promise.all(Array.from({ length: 5 }, async () => (await seedRun(root, agent)).id))
  const [own, others, late, unoffered, secret] = ids as [RunId, RunId, RunId, RunId, RunId]
  await offer(root, own, late, secret)
  await offerRuns(root, { runIds: [others], device: other, at, expiresAt: at + 10 })
  await changeRun(root, late, { type: 'offer_withdrawn', fence: 1 })
  await offer(root, late)
  const sent = [
    { runId: own, fence: 1, device, at: at + 1 },
    { runId: others, fence: 1, device: other, at: at + 2 },
    { runId: late, fence: 1, device, at: at + 3 },
    { runId: unoffered, fence: 0, device, at: at + 4 },
    // Offered to another device, whose claim it is no part of.
    { runId: secret, fence: 1, device: other, at: at + 5 },
  ]
  const claimed = await claimRuns(root, sent)
  expect(new Set(idsOf(claimed.map(({ run }) => run)))).toEqual(new Set([own, others]))
  for (const { run } of claimed) expect(run).toEqual(await findRun(root, run.id))
  expect(await findRun(root, others)).toMatchObject({ device: other, startedAt: at + 2, leaseState: 'claimed' })
  expect(await findRun(root, late)).toMatchObject({ leaseState: 'offered', fence: 2, startedAt: null })
  expect(await findRun(root, secret)).toMatchObject({ leaseState: 'offered', device })
  expect(await claimRuns(root, sent)).toEqual([])
  expect(await claimRuns(root, [])).toEqual([])
})

test.skipIf(!hasPostgres())(
  'a run whose row somebody writes is left out of those that are claimed together',
  async () => {
    const database = await openPostgres()
    const { root } = database
    try {
      const agent = await seedAgent(root, await seedWorkspace(root))
      const [free, held] = [(await seedRun(root, agent)).id, (await seedRun(root, agent)).id]
      await offer(root, free, held)
      const sent = [free, held].map((runId) => ({ runId, fence: 1, device, at }))
      await root.transaction(async (tx) => {
        await lockRun(tx, held)
        const claimed = await claimRuns(root, sent, { areFree: true })
        expect(idsOf(claimed.map(({ run }) => run))).toEqual([free])
      })
      const claimed = await claimRuns(root, sent, { areFree: true })
      expect(idsOf(claimed.map(({ run }) => run))).toEqual([held])
    } finally {
      await database.close()
    }
  },
)
