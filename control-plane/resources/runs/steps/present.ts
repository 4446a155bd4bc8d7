import type { AgentRef, DeviceRef } from '../../../../shared/lib/ids.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { triggerSources, type Run, type RunDetail } from '../../../../shared/api/runs.ts'
import type { WorkflowStepOfRun } from '../../../../shared/api/workflow-fields.ts'
import { exitReasonNames } from '../../../../shared/runs/exit-reasons.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { harnesses } from '../../../../shared/runs/harnesses.ts'
import { reasoningEfforts } from '../../../../shared/runs/spec.ts'
import type { Db } from '../../../db/open.ts'
import { loadPlacementFacts, type Moment } from '../../../run/placement/facts.ts'
import type { Gate, PlacementFacts, RunFacts } from '../../../run/places/place.ts'
import { placeOfEnvironment } from '../../../run/places/places.ts'
import { describeGate, placeRun } from '../../../run/placement/placement.ts'
import { findWaiting } from '../../../run/placement/waiting-store.ts'
import { handleText } from '../../agents/present.ts'
import { listAgentIdentities, type AgentIdentity } from '../../agents/identity-store.ts'
import type { SandboxRow } from '../../sandboxes/store.ts'
import { openHoldsOfRuns, type OpenHold } from '../../approvals/open-holds.ts'
import { isAsking } from '../../approvals/rules.ts'
import { livenessOf } from '../../devices/rules.ts'
import { listDevicesByPublicId, type DeviceRow } from '../../devices/store.ts'
import { listPromptStarts } from '../details-store.ts'
import { type RunRow } from '../store.ts'
import { timingsOf } from '../timings.ts'
import type { WhyFacts } from '../why.ts'
import { lookedAtChars, promptStartOf } from './own/prompt-start.ts'
import { listWorkflowSteps } from './workflow-step.ts'

// Shows runs to clients. Everything a page of runs needs beside its rows is loaded once for all of them.

interface Surroundings extends Moment {
  agents: ReadonlyMap<string, AgentIdentity>
  devices: ReadonlyMap<string, DeviceRow>
  /** The open holds of the page's runs that stopped to ask. */
  holds: ReadonlyMap<string, readonly OpenHold[]>
  /** The facts of the runs of the page that wait, by their ids. */
  waiting: ReadonlyMap<string, RunFacts>
  /** null when no run of the page waits. */
  placement: PlacementFacts | null
  workflowSteps: ReadonlyMap<string, WorkflowStepOfRun>
  /** The first words of the prompts of those runs that work on nothing with a title. */
  promptStarts: ReadonlyMap<string, string>
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
  const sandbox = await placeOf(run).findContainer(db, run.id)
  return { ...presentRun(run, around), ...detailOf(run, sandbox) }
}

/** The facts by which `whyOf` says why the run is as it is now. */
export async function loadWhyFacts(
  db: Db,
  run: RunRow,
  { agent, ...moment }: Moment & { agent: AgentIdentity | null },
): Promise<Omit<WhyFacts, 'waits'>> {
  const around = await load(db, [run], { ...moment, ...(agent && { agents: [agent] }) })
  const waiting = around.waiting.get(run.id)
  return {
    run,
    shown: presentRun(run, around),
    gate: gateOf(run, around),
    isBeingMade: waiting !== undefined && placeOf(run).isBeingMade(waiting),
    hold: around.holds.get(run.id)?.[0] ?? null,
    deviceHeardAt: around.devices.get(executedOn(run) ?? '')?.lastHeartbeatAt ?? null,
  }
}

const placeOf = (run: RunRow) => placeOfEnvironment(run.environmentType)

const waitingOnOf = (hold: OpenHold | undefined): Run['waitingOn'] =>
  hold === undefined ? null : { kind: hold.kind, id: hold.id, label: hold.label, since: toTimestamp(hold.since) }

/** Waits for a device and is not being offered to one: something may gate it. */
const isWaiting = (run: RunRow) => run.status === 'queued' && run.leaseState === 'none'

/** Only a run that works or that stopped to ask can be waited for. */
const mayAsk = (run: RunRow) => (run.endedAt === null ? run.startedAt !== null : isAsking(run.exitReason))

/** Most runs have ended and need little beside their rows: what no run of the page needs is not asked for. */
async function load(
  db: Db,
  runs: readonly RunRow[],
  { agents, ...moment }: Moment & { agents?: readonly AgentIdentity[] },
): Promise<Surroundings> {
  const identities =
    agents ??
    (await listAgentIdentities(
      db,
      unique(runs, (run) => run.agentRef),
    ))
  const devices = unique(runs, executedOn)
  const askers = idsOf(runs.filter(mayAsk))
  const around: Surroundings = {
    ...moment,
    waiting: none,
    placement: null,
    agents: byKey(identities, 'id'),
    // A device that connected anew has several rows with one durable id; the last one is the one of now.
    devices: devices.length === 0 ? none : byKey(await listDevicesByPublicId(db, devices), 'publicId'),
    holds: askers.length === 0 ? none : await openHoldsOfRuns(db, askers),
    workflowSteps: await listWorkflowSteps(db, idsOf(runs.filter(({ workflowRunId }) => workflowRunId !== null))),
    promptStarts: await promptStartsOf(db, runs),
  }
  const waiting = runs.filter(isWaiting)
  if (waiting[0] === undefined) return around
  const found = await findWaiting(db, idsOf(waiting))
  return {
    ...around,
    waiting: new Map(found.map(({ id, facts }) => [id, facts])),
    placement: await loadPlacementFacts(db, waiting[0].workspaceId, moment),
  }
}

async function promptStartsOf(db: Db, runs: readonly RunRow[]): Promise<ReadonlyMap<string, string>> {
  const untitled = idsOf(runs.filter(({ taskKey, workflowRunId }) => taskKey === null && workflowRunId === null))
  if (untitled.length === 0) return none
  const begins = await listPromptStarts(db, untitled, lookedAtChars)
  return new Map(
    [...begins].flatMap(([id, begin]) => {
      const start = promptStartOf(begin)
      return start === null ? [] : [[id, start] as const]
    }),
  )
}

const idsOf = (runs: readonly RunRow[]) => runs.map((run) => run.id)

const none: ReadonlyMap<string, never> = new Map<string, never>()
function unique<Kind extends AgentRef | DeviceRef>(
  runs: readonly RunRow[],
  idOf: (run: RunRow) => Kind | null,
): Kind[] {
  const ids = new Set<Kind>()
  for (const run of runs) {
    const id = idOf(run)
    if (id !== null) ids.add(id)
  }
  return ids.size === 0 ? [] : [...ids]
}

function byKey<K extends string, T extends Record<K, string>>(rows: readonly T[], key: K): ReadonlyMap<string, T> {
  return new Map(rows.map((row) => [row[key], row]))
}

/** Durable id of the device that executes or executed the run; an offer alone does not count, and a sandbox is no device. */
const executedOn = (run: RunRow): DeviceRef | null =>
  run.startedAt !== null && placeOf(run).showsDevice ? run.device : null

function presentRun(run: RunRow, around: Surroundings): Run {
  const agent = around.agents.get(run.agentRef) ?? null
  const gate = gateOf(run, around)
  return {
    object: 'run',
    id: run.id,
    status: run.status,
    agent: agent && { id: agent.id, handle: handleText(agent), name: agent.name },
    task: run.taskKey === null ? null : { id: run.taskKey, title: run.taskTitle ?? '' },
    triggerSource: triggerSources.find((source) => source === run.triggerSource) ?? 'unknown',
    errorCode: run.errorCode,
    gateReason: gate?.reason ?? null,
    gateDescription: gate === null ? null : describeGate(gate, run.harness),
    waitingOn: waitingOnOf(around.holds.get(run.id)?.[0]),
    harness: { id: run.harness, ...withoutUndefined({ version: run.harnessVersion ?? undefined }) },
    environment: environmentOf(run, around),
    costUsd: run.costUsd,
    ...withoutUndefined({
      workflowStep: around.workflowSteps.get(run.id),
      promptStart: around.promptStarts.get(run.id),
    }),
    createdAt: toTimestamp(run.createdAt),
    startedAt: toTimestamp(run.startedAt),
    completedAt: toTimestamp(run.endedAt),
  }
}

/** Derived at read time by the same decision that places runs, so what is read is what the dispatcher does. */
function gateOf(run: RunRow, around: Surroundings): Gate | null {
  const facts = around.waiting.get(run.id)
  if (facts === undefined || around.placement === null) return null
  const placement = placeRun(facts, around.placement)
  return placement.kind === 'gate' ? placement : null
}

function environmentOf(run: RunRow, around: Surroundings): Run['environment'] {
  const type = run.environmentType
  const publicId = executedOn(run)
  const device = publicId === null ? null : (around.devices.get(publicId) ?? null)
  return {
    id: type,
    type,
    cwd: cwdOf(run),
    deviceName: device?.displayName ?? null,
    deviceId: device?.deviceUuid ?? null,
    deviceLiveness: device && livenessOf(device, around.now, around.leaseMs),
  }
}

const cwdOf = (run: RunRow): NonNullable<Run['environment']>['cwd'] =>
  run.folderId !== null || run.repoId !== null ? 'repo-root' : placeOf(run).cwd

function detailOf(run: RunRow, sandbox: SandboxRow | null) {
  return {
    sandbox: sandbox && { id: sandbox.id, size: sandbox.size, image: sandbox.image },
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
            accessMode: accessModeOf(run),
            providerKeyId: run.providerKeyId,
            reasoningEffort: reasoningEfforts.find((effort) => effort === run.reasoningEffort) ?? null,
            mode: modeOf(run.permissionMode),
          },
    toolCallCount: run.toolCallCount,
    terminalAt: toTimestamp(run.endedAt),
    timings: timingsOf(run),
  }
}

/** The harness uses the sign-in of the device's owner where it has no key, and the operator's key in the cloud. */
function accessModeOf(run: RunRow): 'credits' | 'byok' | 'subscription' {
  if (run.providerKeyId !== null) return 'byok'
  return harnesses[run.harness].runsOwnCommand ? 'subscription' : placeOf(run).paidBy
}

/** The API has no name for `strict`, in which only what the agent's lists allow is done. */
const modeOf = (permissionMode: string | null): 'ask' | 'full' | 'agent_default' =>
  permissionMode === 'ask' || permissionMode === 'full' ? permissionMode : 'agent_default'
