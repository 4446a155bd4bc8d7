import { idFrom, type ActorRef, type WorkflowRunId } from '../../shared/lib/ids.ts'
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import type { Db } from '../../control-plane/db/open.ts'
import {
  findAutomationOfRun,
  findRunOfBody,
  hasFired,
  hasLiveRun,
  insertFire,
  listFiredRuns,
  listSkips,
  removeOldSkips,
  type FireRow,
} from '../../control-plane/resources/automations/fire-store.ts'
import {
  claimDue,
  findAutomation,
  findWorkspaceOfToken,
  insertAutomation,
  listAutomations,
  listDue,
  listListening,
  lockAutomation,
  lockAutomationByToken,
  recordCall,
  recordRun,
  recordWorkflowRun,
  replaceAutomation,
  replaceNextFire,
  type AutomationRow,
} from '../../control-plane/resources/automations/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { WorkViewer } from '../../control-plane/resources/projects/work-visibility.ts'
import { onBoth } from '../kit/database.ts'
import { automationRow } from './automations-rows.ts'
import { at, seedAgent, seedPerson, seedRun, seedWorkspace, wroteSecond } from './seed.ts'
import { endRun } from '../kit/end-run.ts'

const everyone = { seesAll: true, personUuid: null, agentRef: null }

async function seedAutomation(db: Db, changes: Partial<AutomationRow> = {}) {
  const agent = await seedAgent(db, await seedWorkspace(db))
  const automation = automationRow(agent, changes)
  await insertAutomation(db, automation)
  return { agent, automation, workspaceId: agent.workspaceId }
}

const fireRow = (automation: AutomationRow, changes: Partial<FireRow> = {}): FireRow => ({
  id: realWorld.id('fir_'),
  automationId: automation.id,
  workspaceId: automation.workspaceId,
  kind: 'triggered',
  reason: null,
  message: null,
  runId: null,
  workflowRunId: null,
  occasion: null,
  bodyHash: null,
  createdAt: at,
  ...changes,
})

onBoth('automations of one workspace never keep those of another from an event', async ({ root }) => {
  const listening = { triggerType: 'github', repo: 'acme/web', event: 'pull_request.merged' } as const
  const first = await seedAutomation(root, { ...listening, id: idFrom('aut_2') })
  for (const [id, createdAt] of [
    ['aut_3', at - 1],
    ['aut_1', at + 1],
  ] as const)
    await insertAutomation(root, automationRow(first.agent, { ...listening, id: idFrom(id), createdAt }))
  const other = await seedAutomation(root, { ...listening, id: idFrom('aut_9') })
  const workspaceIds = [first.workspaceId, other.workspaceId]
  const found = await listListening(root, { ...listening, workspaceIds, perWorkspace: 2 })
  // Of one with more, the oldest hear of it.
  expect(found.map(({ id }) => id)).toEqual(['aut_2', 'aut_3', 'aut_9'])
})

onBoth(
  'an automation comes back as it was stored, and is replaced only from the version that was read',
  async ({ root }) => {
    const { automation, agent, workspaceId } = await seedAutomation(root, {
      triggerType: 'schedule',
      cron: '0 9 * * 1-5',
      timezone: 'Europe/Berlin',
      description: '# Größe',
      nextFireAt: at + 5,
      createdByType: 'user',
      createdByRef: idFrom<ActorRef>('usr_0000000000000001'),
    })
    expect(await findAutomation(root, workspaceId, automation.id)).toEqual(automation)
    expect(await findAutomation(root, await seedWorkspace(root), automation.id)).toBeNull()
    const changed: AutomationRow = {
      ...automation,
      name: 'Other',
      status: 'archived',
      triggerType: 'github',
      cron: null,
      timezone: null,
      event: 'pull_request.merged',
      repo: 'acme/web',
      workflow: 'review',
      modelId: 'm',
      environment: 'device',
      concurrencyPolicy: 'skip_if_running',
      nextFireAt: null,
      archivedAt: at + 6,
      updatedAt: at + 6,
    }
    await replaceAutomation(root, automation, changed)
    expect(await findAutomation(root, workspaceId, automation.id)).toEqual({ ...changed, version: 2 })
    await expect(replaceAutomation(root, automation, { ...automation })).rejects.toMatchObject(wroteSecond)
    const merged = { repo: 'acme/web', event: 'pull_request.merged', workspaceIds: [workspaceId], perWorkspace: 9 }
    expect(await listListening(root, merged)).toEqual([{ id: automation.id, workspaceId }])
    expect(await listListening(root, { ...merged, event: 'pull_request.checks_passed' })).toEqual([])
    expect(await listListening(root, { ...merged, repo: 'acme/api' })).toEqual([])
    expect(await listListening(root, { ...merged, workspaceIds: [await seedWorkspace(root)] })).toEqual([])
    expect(agent.id).toBe(changed.agentRef)
    await recordWorkflowRun(root, automation.id, { id: idFrom('flr_1'), at: at + 7 })
    expect(await findAutomation(root, workspaceId, automation.id)).toMatchObject({
      lastRunId: null,
      lastWorkflowRunId: 'flr_1',
      lastFiredAt: at + 7,
    })
  },
)

onBoth('a secret is one automation’s; fires and calls are noted beside what people change', async ({ root }) => {
  const tokenHash = realWorld.uuid()
  const { automation, agent } = await seedAutomation(root, { tokenHash })
  expect(await insertAutomation(root, automationRow(agent, { tokenHash })).catch(databaseTroubleOf)).toBe('duplicate')
  await insertAutomation(root, automationRow(agent))
  await root.transaction(async (tx) => {
    expect(await lockAutomationByToken(tx, tokenHash)).toEqual(automation)
    expect(await lockAutomationByToken(tx, 'unknown')).toBeNull()
    expect(await findWorkspaceOfToken(tx, tokenHash)).toBe(automation.workspaceId)
    expect(await findWorkspaceOfToken(tx, 'unknown')).toBeNull()
    await recordCall(tx, automation.id, { since: at + 1, calls: 7 })
    await recordRun(tx, automation.id, { id: idFrom('run_1'), at: at + 2 })
    const noted = { callsSince: at + 1, calls: 7, lastRunId: 'run_1', lastFiredAt: at + 2 }
    expect(await lockAutomation(tx, automation.id)).toEqual({ ...automation, ...noted })
    expect(await lockAutomation(tx, idFrom('aut_unknown'))).toBeNull()
  })
  // Nothing that a person would have overwritten.
  await replaceAutomation(root, automation, { ...automation, name: 'Renamed' })
})

onBoth('due schedules come in their order, page by page, and are claimed by one', async ({ root, dialect }) => {
  const { agent } = await seedAutomation(root)
  const times = [3, 1, 2, 2, 9]
  const rows = times.map((offset) => automationRow(agent, { nextFireAt: at + offset }))
  for (const row of rows) await insertAutomation(root, row)
  const due = await listDue(root, { now: at + 3, limit: 10 })
  expect(due.map((each) => each.at - at)).toEqual([1, 2, 2, 3])
  const first = await listDue(root, { now: at + 3, limit: 2 })
  const rest = await listDue(root, { now: at + 3, limit: 10, after: first[1]! })
  expect([...first, ...rest]).toEqual(due)
  await root.transaction(async (tx) => {
    expect((await claimDue(tx, due[0]!))?.id).toBe(due[0]!.id)
    if (dialect === 'postgres')
      await root.transaction(async (other) => expect(await claimDue(other, due[0]!)).toBeNull())
    await replaceNextFire(tx, due[0]!.id, at + 100)
  })
  await root.transaction(async (tx) => expect(await claimDue(tx, due[0]!)).toBeNull())
  await replaceNextFire(root, due[1]!.id, null)
  expect(await listDue(root, { now: at + 3, limit: 10 })).toHaveLength(2)
})

onBoth('a list pages newest first and filters by status, agent and text', async ({ root }) => {
  const { agent, workspaceId, automation } = await seedAutomation(root, { name: 'First' })
  const other = await seedAgent(root, workspaceId)
  const rows = [
    automation,
    automationRow(agent, { name: '100% done', status: 'paused', createdAt: at + 1 }),
    automationRow(other, { description: 'Reviews Pulls', createdAt: at + 2 }),
  ]
  for (const row of rows.slice(1)) await insertAutomation(root, row)
  await seedAutomation(root)
  const listed = async (filter: Partial<Parameters<typeof listAutomations>[1]>) =>
    (await listAutomations(root, { workspaceId, viewer: everyone, limit: 25, ...filter })).map((row) =>
      rows.findIndex(({ id }) => id === row.id),
    )
  expect(await listed({})).toEqual([2, 1, 0])
  expect(await listed({ limit: 1 })).toEqual([2, 1])
  expect(await listed({ before: { createdAt: at + 1, id: rows[1]!.id } })).toEqual([0])
  expect(await listed({ statuses: ['paused', 'archived'] })).toEqual([1])
  expect(await listed({ agentRef: other.id })).toEqual([2])
  expect(await listed({ q: 'pulls' })).toEqual([2])
  expect(await listed({ q: '0% D' })).toEqual([1])
  expect(await listed({ q: '' })).toEqual([2, 1, 0])
})

onBoth('automations and runs of a private agent are listed for whom it is', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [owner, stranger] = [await seedPerson(root, workspaceId), await seedPerson(root, workspaceId)]
  const agent = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: owner })
  const automation = automationRow(agent)
  await insertAutomation(root, automation)
  await insertFire(root, fireRow(automation, { runId: (await seedRun(root, agent)).id }))
  const sees = async (visibleTo: WorkViewer) => {
    const viewer = { ...everyone, seesAll: false, ...visibleTo }
    const page = { workspaceId, limit: 5 }
    const fired = await listFiredRuns(root, { ...page, visibleTo })
    return [(await listAutomations(root, { ...page, viewer })).length, fired.length]
  }
  expect(await sees({ personUuid: owner, personRef: idFrom('usr_1') })).toEqual([1, 1])
  expect(await sees({ agentRef: agent.id, agentUuid: agent.uuid })).toEqual([1, 1])
  expect(await sees({ personUuid: stranger, personRef: idFrom('usr_2') })).toEqual([0, 0])
  expect(await sees({ agentRef: idFrom('agt_other'), agentUuid: idFrom(randomUUID()) })).toEqual([0, 0])
})

onBoth('an occasion fires an automation once; others it fires too', async ({ root }) => {
  const { automation, agent } = await seedAutomation(root)
  const other = automationRow(agent)
  await insertAutomation(root, other)
  await insertFire(root, fireRow(automation, { occasion: 'schedule 1' }))
  expect(await hasFired(root, automation.id, 'schedule 1')).toBe(true)
  expect(await hasFired(root, automation.id, 'schedule 2')).toBe(false)
  expect(await insertFire(root, fireRow(automation, { occasion: 'schedule 1' })).catch(databaseTroubleOf)).toBe(
    'duplicate',
  )
  await insertFire(root, fireRow(other, { occasion: 'schedule 1' }))
  await insertFire(root, fireRow(automation))
  await insertFire(root, fireRow(automation))
})

onBoth('the run of a body is found while it is remembered; a live run is seen until it ends', async ({ root }) => {
  const { automation, agent } = await seedAutomation(root)
  const { id: runId } = await seedRun(root, agent)
  const call = { automationId: automation.id, bodyHash: 'h', since: at - 1 }
  await insertFire(root, fireRow(automation, { kind: 'skipped', reason: 'concurrency', bodyHash: 'h' }))
  expect(await findRunOfBody(root, call)).toBeNull()
  expect(await hasLiveRun(root, automation)).toBe(false)
  expect(await findAutomationOfRun(root, runId)).toBeNull()
  await insertFire(root, fireRow(automation, { runId, bodyHash: 'h' }))
  expect(await findAutomationOfRun(root, runId)).toBe(automation.id)
  const step = await seedRun(root, agent)
  await root('runs').where({ id: step.id }).update({ workflow_run_id: 'flr_a' })
  expect(await findAutomationOfRun(root, step.id)).toBeNull()
  await insertFire(root, fireRow(automation, { workflowRunId: idFrom<WorkflowRunId>('flr_a') }))
  expect(await findAutomationOfRun(root, step.id)).toBe(automation.id)
  expect(await findRunOfBody(root, call)).toBe(runId)
  expect(await findRunOfBody(root, { ...call, bodyHash: 'other' })).toBeNull()
  expect(await findRunOfBody(root, { ...call, since: at })).toBeNull()
  expect(await hasLiveRun(root, automation)).toBe(true)
  await endRun(root, { runId, fence: null, exitReason: 'completed', errorMessage: null, at })
  expect(await hasLiveRun(root, automation)).toBe(false)
})

onBoth('runs and skips of an automation page newest first; old skips are forgotten', async ({ root }) => {
  const { automation, agent, workspaceId } = await seedAutomation(root)
  const second = automationRow(agent)
  await insertAutomation(root, second)
  const runs: string[] = []
  for (const [i, of] of [automation, second, automation].entries()) {
    const { id: runId } = await seedRun(root, agent)
    runs.push(runId)
    await insertFire(root, fireRow(of, { runId, createdAt: at + i }))
  }
  await endRun(root, { runId: idFrom(runs[0]!), fence: null, exitReason: 'error', errorMessage: null, at })
  const fired = async (filter: Partial<Parameters<typeof listFiredRuns>[1]>) =>
    (await listFiredRuns(root, { workspaceId, limit: 25, ...filter })).map(({ runId }) => runs.indexOf(runId))
  expect(await fired({})).toEqual([2, 1, 0])
  expect(await fired({ limit: 1 })).toEqual([2, 1])
  expect(await fired({ automationId: automation.id })).toEqual([2, 0])
  expect(await fired({ statuses: ['failed'] })).toEqual([0])
  const [newest] = await listFiredRuns(root, { workspaceId, limit: 1 })
  expect(await fired({ before: { createdAt: newest!.createdAt, id: newest!.id } })).toEqual([1, 0])
  const skips = [1, 2, 3].map((i) => fireRow(automation, { kind: 'skipped', reason: 'paused', createdAt: at + i }))
  for (const skip of skips) await insertFire(root, skip)
  expect(await listSkips(root, automation.id, { limit: 25 })).toEqual(skips.toReversed())
  expect(await listSkips(root, automation.id, { limit: 1 })).toHaveLength(2)
  const before = { createdAt: at + 3, id: skips[2]!.id }
  expect(await listSkips(root, automation.id, { limit: 25, before })).toEqual([skips[1], skips[0]])
  expect(await removeOldSkips(root, at + 3)).toBe(2)
  expect(await listSkips(root, automation.id, { limit: 25 })).toEqual([skips[2]])
  expect(await fired({})).toHaveLength(3)
})
