import type { World } from '../../shared/lib/world.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import { publish } from '../db/outbox.ts'
import type { Tx } from '../db/open.ts'
import { recordLastRun, type AgentRow } from '../resources/agents/store.ts'
import { findFolder, findFolderByRepo, type FolderRow } from '../resources/folders/store.ts'
import { findDetails, insertDetails } from '../resources/runs/details-store.ts'
import { endRun, insertRun, listLiveOfAgent, setSuccessor, type RunRow } from '../resources/runs/store.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import { admit, type Admission, type NotDispatchedReason } from './admission.ts'
import { spentBudgetOf } from './budget.ts'
import { buildSpec } from './build-spec.ts'
import type { OfferedRun } from './dispatcher.ts'
import { lockPlacement, toRunFacts } from './facts.ts'
import { harnessOf } from './harness-of.ts'
import { placeRun, type GateReason, type Placement } from './placement.ts'

export interface Wake {
  agent: AgentRow
  /** One of the trigger sources of document 1. */
  triggerSource: string
  /** Public id of the person (`usr_`) or agent (`agt_`) behind the wake. */
  requestedBy: string | null
  prompt: string | null
  /** The run this one continues. */
  parent: RunRow | null
}

export type WakeAnswer =
  /** `offer`: the run was given to a device in this transaction; the device is told after the commit. */
  | { kind: 'queued'; runId: string; offer: OfferedRun | null }
  | { kind: 'pending'; runId: string; gateReason: GateReason }
  | { kind: 'coalesced'; runId: string }
  | { kind: 'declined'; runId: string; exitReason: string; message: string }
  | { kind: 'not_dispatched'; reason: NotDispatchedReason; message: string }

export interface WakeContext {
  world: World
  leaseMs: number
  cloudEnabled: boolean
  limits: Partial<RunSpec['limits']>
  catalog: ModelCatalog
  offers: DirectOffers
}

/** The devices linked to this replica, as far as a wake needs them. */
export interface DirectOffers {
  isLinked(publicId: string): boolean
  offerMs: number
}

/**
 * Turns a wake into what admission says, in the caller's transaction. A new run is offered in the same transaction when
 * a device that may take it is linked to this replica and has room, which saves a commit on the way to its start; else
 * it is dispatched by whoever reads the outbox.
 */
export async function startRun(tx: Tx, wake: Wake, context: WakeContext): Promise<WakeAnswer> {
  const { agent } = wake
  const { catalog, limits } = context
  const now = context.world.now()
  const workspace = await findWorkspace(tx, agent.workspaceId)
  if (!workspace) return { kind: 'not_dispatched', reason: 'dispatch_build_failed', message: 'The workspace is gone.' }
  const folder = await folderOf(tx, wake)
  const admission = admit({
    agent,
    workspace,
    folder: agent.defaultFolderId === null ? null : folder ? 'bound' : 'missing',
    cloudEnabled: context.cloudEnabled,
    spentBudget: await spentBudgetOf(tx, { agent, workspace, now }),
    sameQueuedRunId: await findSameQueued(tx, wake),
  })
  if (admission.kind === 'not_dispatched') return admission
  if (admission.kind === 'coalesced') return { kind: 'coalesced', runId: admission.intoRunId }
  const runId = context.world.id('run_')
  const resume = wake.parent && (await resumable(tx, wake.parent, { agent, catalog })) ? wake.parent.sessionId : null
  const prompt = wake.prompt ?? `You were woken by ${wake.triggerSource}. No prompt was given.`
  const spec = buildSpec({ runId, agent, workspace, folder, prompt, resumeSessionId: resume, limits, catalog })
  const placement = admission.kind === 'declined' ? null : await place(tx, wake, { folder, context })
  const device = placement?.kind === 'device' && placement.mayOffer ? placement.publicId : null
  await insertRun(tx, {
    id: runId,
    workspaceId: agent.workspaceId,
    agentId: agent.id,
    triggerSource: wake.triggerSource,
    requestedBy: wake.requestedBy,
    harness: spec.harness,
    environmentType: agent.environment,
    folderId: folder?.shortId ?? null,
    taskId: null,
    taskKey: null,
    taskTitle: null,
    parentRunId: wake.parent?.id ?? null,
    modelId: spec.model,
    reasoningEffort: spec.reasoningEffort,
    permissionMode: spec.permissions.defaultMode,
    createdAt: now,
    offer: device === null ? null : { device, expiresAt: now + context.offers.offerMs },
  })
  await insertDetails(tx, { runId, prompt, spec, manifest: manifestOf(spec) })
  if (wake.parent) await setSuccessor(tx, wake.parent.id, runId)
  if (admission.kind === 'declined') return decline(tx, { runId, agent, admission, now })
  if (device !== null) return { kind: 'queued', runId, offer: { runId, fence: 1, device, spec } }
  await publish(tx, { topic: 'run.queued', key: runId, at: now })
  return placement?.kind === 'gate'
    ? { kind: 'pending', runId, gateReason: placement.reason }
    : { kind: 'queued', runId, offer: null }
}

/** To be called once the wake is committed: whoever must act on it is told. */
export function announce(
  answer: WakeAnswer,
  to: { dispatcher: { push(offered: OfferedRun): void }; bus: { poke(): void } },
): void {
  if (answer.kind === 'queued' && answer.offer) to.dispatcher.push(answer.offer)
  else to.bus.poke()
}

/** Where the run goes; the room it takes there is locked until the transaction ends. */
async function place(
  tx: Tx,
  { agent, parent }: Wake,
  { folder, context }: { folder: FolderRow | null; context: WakeContext },
): Promise<Placement & { mayOffer: boolean }> {
  const { world, leaseMs, offers } = context
  const { facts, isHalted } = await lockPlacement(tx, agent.workspaceId, { now: world.now(), leaseMs })
  const placement = placeRun(toRunFacts({ folderId: folder?.shortId ?? null }, { agent, folder, parent }), facts)
  // A workspace that was halted since it was read: the dispatcher sees that, too, and cancels the run.
  return { ...placement, mayOffer: placement.kind === 'device' && !isHalted && offers.isLinked(placement.publicId) }
}

async function decline(
  tx: Tx,
  input: { runId: string; agent: AgentRow; admission: Admission & { kind: 'declined' }; now: number },
): Promise<WakeAnswer> {
  const { runId, admission, now } = input
  await endRun(tx, {
    runId,
    fence: null,
    exitReason: admission.exitReason,
    errorCode: admission.exitReason,
    errorMessage: admission.message,
    at: now,
  })
  await recordLastRun(tx, input.agent.id, now)
  await publish(tx, { topic: 'run.ended', key: runId, at: now })
  return { kind: 'declined', runId, exitReason: admission.exitReason, message: admission.message }
}

async function folderOf(tx: Tx, wake: Wake) {
  const { agent } = wake
  if (agent.defaultFolderId !== null) return findFolder(tx, agent.workspaceId, agent.defaultFolderId)
  // A device run for a repo starts in the folder that holds it (document 1, "Folder").
  const workspace = agent.defaultRepoId === null ? null : await findWorkspace(tx, agent.workspaceId)
  if (!workspace?.defaultDevice || agent.defaultRepoId === null) return null
  return findFolderByRepo(tx, workspace.defaultDevice, agent.defaultRepoId)
}

/** A wake by assignment or mention that adds nothing to one still waiting is folded into it; a person's own wake never is. */
async function findSameQueued(tx: Tx, wake: Wake): Promise<string | null> {
  if (wake.triggerSource !== 'assignment' && wake.triggerSource !== 'mention') return null
  for (const run of await listLiveOfAgent(tx, wake.agent.id)) {
    if (run.status !== 'queued' || run.triggerSource !== wake.triggerSource || run.taskId !== null) continue
    const details = await findDetails(tx, run.id)
    if (wake.prompt === null || details?.prompt === wake.prompt) return run.id
  }
  return null
}

/**
 * A session is gone on with where it lies: same harness, its folder was not exchanged for another, and sessions were not
 * reset since.
 */
async function resumable(
  tx: Tx,
  parent: RunRow,
  { agent, catalog }: { agent: AgentRow; catalog: ModelCatalog },
): Promise<boolean> {
  if (!parent.sessionId || parent.agentId !== agent.id) return false
  if (agent.sessionsResetAt !== null && parent.createdAt <= agent.sessionsResetAt) return false
  const details = await findDetails(tx, parent.id)
  const model = agent.model ?? details?.spec.model ?? null
  return parent.harness === harnessOf(agent.harness, model, catalog) && parent.folderId === agent.defaultFolderId
}

/** The setup of a run as clients may read it: names of environment keys, never values. */
function manifestOf(spec: RunSpec): Record<string, unknown> {
  return {
    rules: spec.agentMd === '' ? [] : [{ name: 'AGENT.md', text: spec.agentMd }],
    skills: [],
    permissions: spec.permissions,
    envKeys: ['SVC_API_URL', 'SVC_TOKEN', 'SVC_RUN_ID', 'SVC_AGENT_ID'],
    harness: spec.harness,
    model: spec.model,
    reasoningEffort: spec.reasoningEffort,
    maxTurns: spec.maxTurns,
    folder: spec.folder,
  }
}
