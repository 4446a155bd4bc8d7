import { toTimestamp } from '../../../../shared/api/ids.ts'
import { triggerSources, type Run, type RunDetail } from '../../../../shared/api/runs.ts'
import { exitReasonNames } from '../../../../shared/runs/exit-reasons.ts'
import { reasoningEfforts } from '../../../../shared/runs/spec.ts'
import type { Db } from '../../../db/open.ts'
import { listMembersAmong } from '../../members/store.ts'
import { isLockedBy, loadPlacementFacts, toRunFacts } from '../../../placement/facts.ts'
import {
  describeGate,
  placeRun,
  type GateReason as PlacementGate,
  type PlacementFacts,
} from '../../../placement/placement.ts'
import { handleText } from '../../agents/present.ts'
import { listAgentIdentities, type AgentIdentity } from '../../agents/identity-store.ts'
import { openGatesOfRuns, type OpenGate } from '../../approvals/open-gates.ts'
import { isAsking } from '../../approvals/rules.ts'
import { livenessOf } from '../../devices/rules.ts'
import { listDevicesByPublicId, type DeviceRow } from '../../devices/store.ts'
import { listFoldersByIds, type FolderRow } from '../../folders/store.ts'
import { listLiveOfTasks } from '../live-store.ts'
import { listRunsByIds } from '../list-store.ts'
import { type RunRow } from '../store.ts'

/** What runs look like to clients. What a page of runs needs beside its rows is loaded once for all of them. */

export interface Moment {
  now: number
  leaseMs: number
}

interface Surroundings extends Moment {
  agents: ReadonlyMap<string, AgentIdentity>
  devices: ReadonlyMap<string, DeviceRow>
  folders: ReadonlyMap<string, FolderRow>
  parents: ReadonlyMap<string, RunRow>
  /** Live runs of the tasks that runs of the page wait for, oldest first. */
  ofTasks: ReadonlyMap<string, readonly RunRow[]>
  /** What runs of the page stopped to ask. */
  gates: ReadonlyMap<string, readonly OpenGate[]>
  /** Of the people who caused those that wait, members of the workspace. */
  causes: ReadonlySet<string>
  /** null when no run of the page waits. */
  placement: PlacementFacts | null
}

export async function presentRuns(db: Db, runs: readonly RunRow[], moment: Moment): Promise<Run[]> {
  const around = await load(db, runs, moment)
  return runs.map((run) => presentRun(run, around))
}

/** `agent`: the run's, when it is at hand. */
export async function presentRunDetail(
  db: Db,
  run: RunRow,
  { agent, ...moment }: Moment & { agent?: AgentIdentity | null },
): Promise<RunDetail> {
  const around = await load(db, [run], { ...moment, ...(agent && { agents: [agent] }) })
  return { ...presentRun(run, around), ...detailOf(run) }
}

const waitingOnOf = (gate: OpenGate | undefined): Run['waitingOn'] =>
  gate === undefined ? null : { kind: gate.kind, id: gate.id, label: gate.label, since: toTimestamp(gate.since) }

/** Waits for a device and is not being offered to one: something may gate it. */
const isWaiting = (run: RunRow) =>
  run.status === 'queued' && run.leaseState === 'none' && run.environmentType === 'device'

/** Only a run that works or that stopped to ask can be waited for. */
const mayAsk = (run: RunRow) => (run.endedAt === null ? run.startedAt !== null : isAsking(run.exitReason))

/** Most runs have ended and need little beside their rows: what no run of the page needs is not asked for. */
async function load(
  db: Db,
  runs: readonly RunRow[],
  { agents, ...moment }: Moment & { agents?: readonly AgentIdentity[] },
): Promise<Surroundings> {
  const found =
    agents ??
    (await listAgentIdentities(
      db,
      unique(runs, (run) => run.agentId),
    ))
  const devices = unique(runs, executedOn)
  const askers = runs.filter(mayAsk).map((run) => run.id)
  const around: Surroundings = {
    ...moment,
    ...nothingWaits,
    agents: byKey(found, 'id'),
    // A device that connected anew has several rows with one durable id; the last one is the one of now.
    devices: devices.length === 0 ? none : byKey(await listDevicesByPublicId(db, devices), 'publicId'),
    gates: askers.length === 0 ? none : await openGatesOfRuns(db, askers),
  }
  const waiting = runs.filter(isWaiting)
  return waiting.length === 0 ? around : { ...around, ...(await loadForWaiting(db, waiting, moment)) }
}

const none: ReadonlyMap<string, never> = new Map<string, never>()
const nothingWaits = { folders: none, parents: none, ofTasks: none, causes: new Set<string>(), placement: null }

async function loadForWaiting(db: Db, waiting: readonly RunRow[], moment: Moment) {
  const workspaceId = waiting[0]?.workspaceId ?? ''
  const folders = unique(waiting, (run) => run.folderId)
  const parents = unique(waiting, (run) => run.parentRunId)
  const tasks = unique(waiting, (run) => run.taskId)
  const causes = unique(waiting, (run) => run.causedByUserId)
  return {
    folders: byKey(await listFoldersByIds(db, workspaceId, folders), 'shortId'),
    parents: byKey(await listRunsByIds(db, workspaceId, parents), 'id'),
    ofTasks: Map.groupBy(await listLiveOfTasks(db, tasks), (run) => run.taskId ?? ''),
    causes: new Set(await listMembersAmong(db, workspaceId, causes)),
    placement: await loadPlacementFacts(db, workspaceId, moment),
  }
}

function unique(runs: readonly RunRow[], idOf: (run: RunRow) => string | null): string[] {
  const ids = new Set<string>()
  for (const run of runs) {
    const id = idOf(run)
    if (id !== null) ids.add(id)
  }
  return ids.size === 0 ? [] : [...ids]
}

function byKey<K extends string, T extends Record<K, string>>(rows: readonly T[], key: K): ReadonlyMap<string, T> {
  return new Map(rows.map((row) => [row[key], row]))
}

/** Durable id of the device that executes or executed the run; an offer alone does not count. */
const executedOn = (run: RunRow): string | null => (run.startedAt === null ? null : run.device)

function presentRun(run: RunRow, around: Surroundings): Run {
  const agent = around.agents.get(run.agentId) ?? null
  const gate = gateOf(run, around)
  return {
    object: 'run',
    id: run.id,
    status: run.status,
    agent: agent && { id: agent.id, handle: handleText(agent), name: agent.name },
    task: run.taskKey === null ? null : { id: run.taskKey, title: run.taskTitle ?? '' },
    triggerSource: triggerSources.find((source) => source === run.triggerSource) ?? 'unknown',
    errorCode: run.errorCode,
    gateReason: gate,
    gateDescription: gate === null ? null : describeGate(gate),
    waitingOn: waitingOnOf(around.gates.get(run.id)?.[0]),
    harness: { id: run.harness },
    environment: environmentOf(run, around),
    costUsd: run.costUsd,
    createdAt: toTimestamp(run.createdAt),
    startedAt: toTimestamp(run.startedAt),
    completedAt: toTimestamp(run.endedAt),
  }
}

/** Derived at read time by the same decision that places runs, so what is read is what the dispatcher does. */
function gateOf(run: RunRow, around: Surroundings): PlacementGate | null {
  if (!isWaiting(run) || around.placement === null) return null
  const facts = toRunFacts(run, {
    agent: around.agents.get(run.agentId) ?? null,
    folder: (run.folderId === null ? undefined : around.folders.get(run.folderId)) ?? null,
    isCauseGone: run.causedByUserId !== null && !around.causes.has(run.causedByUserId),
    parent: (run.parentRunId === null ? undefined : around.parents.get(run.parentRunId)) ?? null,
    isTaskLocked: run.taskId !== null && isLockedBy(run, around.ofTasks.get(run.taskId) ?? []),
  })
  const placement = placeRun(facts, around.placement)
  return placement.kind === 'gate' ? placement.reason : null
}

function environmentOf(run: RunRow, around: Surroundings): Run['environment'] {
  const type = run.environmentType
  const publicId = executedOn(run)
  const device = publicId === null ? null : (around.devices.get(publicId) ?? null)
  return {
    id: type,
    type,
    cwd: type === 'cloud' ? 'sandbox-root' : run.folderId === null ? 'home' : 'repo-root',
    deviceName: device?.displayName ?? null,
    deviceId: device?.deviceId ?? null,
    deviceLiveness: device && livenessOf(device, around.now, around.leaseMs),
  }
}

function detailOf(run: RunRow) {
  return {
    exitReason: exitReasonNames.find((reason) => reason === run.exitReason) ?? null,
    errorMessage: run.errorMessage,
    parentRunId: run.parentRunId,
    successorRunId: run.successorRunId,
    conversationId: run.conversationId,
    effectiveSettings:
      run.sessionId === null
        ? null
        : {
            modelId: run.modelId,
            // A harness on a person's device uses that person's own sign-in.
            accessMode: 'subscription' as const,
            providerKeyId: null,
            reasoningEffort: reasoningEfforts.find((effort) => effort === run.reasoningEffort) ?? null,
            mode: 'agent_default' as const,
          },
    toolCallCount: run.toolCallCount,
    terminalAt: toTimestamp(run.endedAt),
  }
}
