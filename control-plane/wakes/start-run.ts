import type { World } from '../../shared/lib/world.ts'
import { type HarnessName, harnesses, harnessFactsOf } from '../../shared/runs/harnesses.ts'
import { mcpServersFor } from '../../shared/runs/given-servers.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { publish } from '../db/outbox.ts'
import type { Tx } from '../db/open.ts'
import { afterCommit } from '../db/transaction.ts'
import type { AgentRow } from '../resources/agents/store.ts'
import { findFolder, findFolderByRepo, type FolderRow } from '../resources/folders/store.ts'
import { listCompacting } from '../resources/runs/compaction-store.ts'
import { findDetails, insertDetails } from '../resources/runs/details-store.ts'
import { listLiveOfAgent } from '../resources/runs/live-store.ts'
import { findRun, insertRun, setSuccessor, type RunRow } from '../resources/runs/store.ts'
import { saidBefore } from '../resources/conversations/said.ts'
import { listSecretKeys } from '../resources/secrets/store.ts'
import { isMember } from '../resources/members/store.ts'
import { findWorkspace, type WorkspaceRow } from '../resources/workspaces/store.ts'
import { hasOnlyHeldTasks } from '../resources/approvals/held-tasks-store.ts'
import { admit, type Admission } from './admission.ts'
import { spentBudgetOf } from '../resources/agents/budget.ts'
import { causeOf } from './cause.ts'
import { buildSpec, type RunOverrides, type SpecInput } from './build-spec.ts'
import { fallbackSpecOf } from './fallback.ts'
import { cancelRun } from '../lifecycle/cancel-run.ts'
import { finishRun } from '../lifecycle/end-run.ts'
import { toRunFacts } from '../placement/facts.ts'
import { isTaskHeld } from '../placement/waiting-store.ts'
import { placeNew, specFor } from '../lifecycle/offer.ts'
import { goingOn } from './going-on.ts'
import { instructionsFor } from './instructions.ts'
import { manifestOf } from './manifest.ts'
import type { RunFacts } from '../placement/placement.ts'
import { findContinued, isResumable } from './session.ts'
import { loadTaskFacts } from './task-facts.ts'
import type { Wake, WakeAnswer, WakeContext, WakeTask } from './wake.ts'

/**
 * Turns a wake into what admission says, in the caller's transaction. A new run is offered in the same transaction when
 * a device that may take it is linked to this replica and has room, which saves a commit on the way to its start; else
 * it is dispatched by whoever reads the outbox.
 */
export async function startRun(tx: Tx, wake: Wake, context: WakeContext): Promise<WakeAnswer> {
  const { agent } = wake
  const { catalog } = context
  const now = context.world.now()
  const workspace = await findWorkspace(tx, agent.workspaceId)
  if (!workspace) return { kind: 'not_dispatched', reason: 'dispatch_build_failed', message: 'The workspace is gone.' }
  const task = wake.task ?? null
  const overrides = { ...overridesOf(task), ...given(wake.overrides ?? {}) }
  const folder = wake.compacts ? await folderOfSession(tx, wake) : await folderOf(tx, { agent, workspace, task })
  const same = await findSameQueued(tx, wake)
  const admission = admit({
    agent,
    workspace,
    environment: overrides.environment ?? agent.environment,
    folder: agent.defaultFolderId === null || task?.repoId ? null : folder ? 'bound' : 'missing',
    cloudEnabled: context.cloudEnabled,
    spentBudget: await spentBudgetOf(tx, { agent, workspace, now }),
    task:
      task &&
      (await loadTaskFacts(tx, task, {
        agent,
        triggerSource: wake.triggerSource,
        now,
        workflowRunId: wake.step?.workflowRunId ?? null,
      })),
    isTimerInVain:
      wake.triggerSource === 'cron' && !wake.compacts && task === null && (await hasOnlyHeldTasks(tx, agent)),
    isUnwantedHook: wake.triggerSource === 'webhook' && !agent.wakeOnHook,
    sameQueuedRunId: same?.id ?? null,
  })
  if (admission.kind === 'not_dispatched') return admission
  if (wake.compacts && admission.kind !== 'admit') return nothingToCompact
  if (admission.kind === 'coalesced') return { kind: 'coalesced', runId: admission.intoRunId }
  const runId = context.world.id('run_')
  const prompt = wake.prompt ?? `You were woken by ${wake.triggerSource}. No prompt was given.`
  const { limits } = context
  const gate = wake.gate ?? null
  const instructions = gate === null ? instructionsFor(agent, workspace) : []
  const draft = { runId, agent, workspace, instructions, folder, prompt, limits, catalog, overrides, gate }
  const built = buildSpec({ ...draft, allowCalls: wake.allowCalls ?? [], resumeSessionId: null })
  const unresumed = wake.compacts ? { ...built, skillFolders: null } : built
  const parent = await parentOf(tx, wake, { spec: unresumed, folderId: folder?.shortId ?? null })
  if (wake.compacts && parent?.sessionId == null) return nothingToCompact
  const isCompacting = parent !== null && !wake.compacts && !(await endCompactions(tx, parent, context))
  const anew = await toldAnew(tx, wake, { spec: unresumed, prompt: gate === null ? prompt : unresumed.prompt })
  const resumeSessionId = parent?.sessionId ?? null
  const spec = await goingOn(tx, parent, { ...unresumed, resumeSessionId, prompt }, anew)
  const continued = parent?.run ?? null
  const causedBy = wake.causedBy === undefined ? await causeOf(tx, wake.requestedBy) : wake.causedBy
  const secretKeys = await listSecretKeys(tx, agent.id)
  const own: Way = { spec, keyId: keyOf(spec.harness, secretKeys) }
  const fallback =
    wake.compacts || gate !== null
      ? null
      : fallbackOf({ ...draft, prompt: anew, allowCalls: spec.allowCalls, resumeSessionId: null }, own, secretKeys)
  const facts = await factsOf(tx, {
    own,
    compacts: wake.compacts ?? null,
    isCompacting,
    fallback,
    causedBy,
    agent,
    folder,
    parent: continued,
    task,
  })
  const place = async () => placeNew(tx, { workspaceId: workspace.id, run: facts }, context.offers)
  const { placement, offer } = admission.kind === 'declined' ? unplaced : await place()
  const isOnFallback = placement?.kind === 'device' && placement.onFallback
  const [way, other] = isOnFallback ? [fallback!, null] : [own, fallback]
  await insertRun(tx, {
    id: runId,
    workspaceId: agent.workspaceId,
    agentId: agent.id,
    triggerSource: wake.triggerSource,
    requestedBy: wake.requestedBy,
    causedByUserId: causedBy,
    harness: way.spec.harness,
    environmentType: overrides.environment ?? agent.environment,
    folderId: folder?.shortId ?? null,
    taskId: task?.id ?? null,
    taskKey: task?.key ?? null,
    taskTitle: task?.title ?? null,
    conversationId: wake.conversationId ?? null,
    parentRunId: continued?.id ?? null,
    modelId: way.spec.model,
    reasoningEffort: way.spec.reasoningEffort,
    permissionMode: way.spec.permissions.defaultMode,
    providerKeyId: way.keyId,
    fallbackHarness: other?.spec.harness ?? null,
    fallbackKeyId: other?.keyId ?? null,
    fallbackModel: other?.spec.model ?? null,
    compacts: wake.compacts ?? null,
    inLineSince: wake.inLineSince ?? null,
    step: wake.step ?? null,
    createdAt: now,
    offer,
  })
  await insertDetails(tx, {
    runId,
    prompt: way.spec.prompt,
    spec: way.spec,
    fallbackSpec: other?.spec ?? null,
    manifest: manifestOf(way.spec, {
      instructions,
      secretKeys: [...secretKeys.keys()],
      mcpLeftOut: mcpServersFor(workspace.mcpServers, way.spec).leftOut,
    }),
  })
  if (continued && !wake.compacts) await setSuccessor(tx, continued.id, runId)
  if (admission.kind === 'declined') return decline(tx, { runId, admission, world: context.world })
  const taskId = task?.id ?? null
  if (offer !== null) {
    const { device } = offer
    afterCommit(tx, () =>
      context.offers.push({ runId, fence: 1, device, taskId, spec: specFor(device, { spec: way.spec, run: facts }) }),
    )
    return { kind: 'queued', runId }
  }
  await publish(tx, { topic: 'run.queued', key: runId, at: now })
  return placement?.kind === 'gate'
    ? { kind: 'pending', runId, gateReason: placement.reason }
    : { kind: 'queued', runId }
}

const nothingToCompact = {
  kind: 'not_dispatched',
  reason: 'dispatch_build_failed',
  message: 'The session cannot be made smaller now.',
} as const

const folderOfSession = async (tx: Tx, { agent, parent }: Wake): Promise<FolderRow | null> =>
  parent?.folderId == null ? null : findFolder(tx, agent.workspaceId, parent.folderId)

/**
 * Nobody's work waits until a session is smaller. False while a process that does it has yet to leave: two that write one
 * session would forget what one of them did.
 */
async function endCompactions(
  tx: Tx,
  { run: { agentId, sessionId } }: { run: RunRow },
  { world, offers: { leaseMs } }: WakeContext,
): Promise<boolean> {
  let haveEnded = true
  for (const compaction of await listCompacting(tx, agentId)) {
    const of = compaction.parentRunId === null ? null : await findRun(tx, compaction.parentRunId)
    if (of?.sessionId !== sessionId) continue
    await cancelRun(tx, compaction, { exitReason: 'duplicate_trigger', reason: null, world, leaseMs })
    if ((await findRun(tx, compaction.id))?.endedAt === null) haveEnded = false
  }
  return haveEnded
}

const unplaced = { placement: null, offer: null }

/** The prompt for a session that knows nothing of the conversation. A program without sessions remembers by itself. */
async function toldAnew(
  tx: Tx,
  { agent, conversationId = null }: Wake,
  { spec, prompt }: { spec: RunSpec; prompt: string },
): Promise<string> {
  if (conversationId === null || !harnessFactsOf(spec).keepsSessions) return prompt
  const said = await saidBefore(tx, { workspaceId: agent.workspaceId, conversationId, agentId: agent.id })
  return [said, prompt].filter(Boolean).join('\n\n')
}

/** The spec that a run is given, and the agent's own key that its harness takes. */
interface Way {
  spec: RunSpec
  keyId: string | null
}

function fallbackOf(input: SpecInput, own: Way, secretKeys: ReadonlyMap<string, string>): Way | null {
  const spec = fallbackSpecOf(input, own.spec)
  return spec && { spec, keyId: keyOf(spec.harness, secretKeys) }
}

/** The facts that the placement of a new run depends on. */
async function factsOf(
  tx: Tx,
  run: {
    own: Way
    fallback: Way | null
    compacts: true | null
    isCompacting: boolean
    causedBy: string | null
    agent: AgentRow
    folder: FolderRow | null
    parent: RunRow | null
    task: WakeTask | null
  },
): Promise<RunFacts> {
  const { own, fallback, agent, folder, parent, causedBy } = run
  const isTaskLocked = run.isCompacting || (run.task !== null && (await isTaskHeld(tx, run.task.id)))
  const isCauseGone = causedBy !== null && !(await isMember(tx, agent.workspaceId, causedBy))
  return toRunFacts(
    {
      agentId: agent.id,
      harness: own.spec.harness,
      folderId: folder?.shortId ?? null,
      causedByUserId: causedBy,
      providerKeyId: own.keyId,
      modelId: own.spec.model,
      compacts: run.compacts,
      fallbackHarness: fallback?.spec.harness ?? null,
      fallbackKeyId: fallback?.keyId ?? null,
      fallbackModel: fallback?.spec.model ?? null,
    },
    { agent, folder, parent, isCauseGone, isTaskLocked },
  )
}

/** The id of the agent's own key that the harness takes. */
function keyOf(harness: HarnessName, secretKeys: ReadonlyMap<string, string>): string | null {
  const name = harnesses[harness].keyNames.find((each) => secretKeys.has(each))
  return name === undefined ? null : secretKeys.get(name)!
}

/** The run that is continued, with its session as far as it can be gone on with. */
async function parentOf(
  tx: Tx,
  wake: Wake,
  { spec, folderId }: { spec: RunSpec; folderId: string | null },
): Promise<{ run: RunRow; sessionId: string | null } | null> {
  const where = { harness: spec.harness, folderId, agent: wake.agent, freshSince: wake.freshSince ?? null }
  const of = { taskId: wake.task?.id ?? null, conversationId: wake.conversationId ?? null }
  const run = wake.parent ?? (wake.gate == null ? await findContinued(tx, of, where) : null)
  if (run === null) return null
  const goesOn = isResumable(run, where) && (await hasItsInstructions(tx, run, spec))
  return { run, sessionId: goesOn ? run.sessionId : null }
}

/** True when the session was begun with the instructions of the new run, or when the harness takes new ones. */
async function hasItsInstructions(tx: Tx, run: RunRow, spec: RunSpec): Promise<boolean> {
  if (!harnessFactsOf(spec).keepsInstructions) return true
  return (await findDetails(tx, run.id))?.spec.agentMd === spec.agentMd
}

async function decline(
  tx: Tx,
  { runId, admission, world }: { runId: string; admission: Admission & { kind: 'declined' }; world: World },
): Promise<WakeAnswer> {
  const { exitReason, message } = admission
  const run = await findRun(tx, runId)
  if (run !== null)
    await finishRun(tx, run, {
      fence: null,
      exitReason,
      errorCode: exitReason,
      errorMessage: message,
      at: world.now(),
      world,
    })
  return { kind: 'declined', runId, exitReason, message }
}

/** The folder the run starts in. The folder of the task's repo takes precedence over the agent's own. */
async function folderOf(
  tx: Tx,
  { agent, workspace, task }: { agent: AgentRow; workspace: WorkspaceRow; task: WakeTask | null },
): Promise<FolderRow | null> {
  const ofRepo = (repoId: string | null) =>
    workspace.defaultDevice === null || repoId === null ? null : findFolderByRepo(tx, workspace.defaultDevice, repoId)
  const ofTask = await ofRepo(task?.repoId ?? null)
  if (ofTask) return ofTask
  if (agent.defaultFolderId !== null) return findFolder(tx, agent.workspaceId, agent.defaultFolderId)
  return ofRepo(agent.defaultRepoId)
}

/**
 * A wake by assignment or mention that adds nothing to one still waiting is folded into it; a person's own wake never is.
 */
async function findSameQueued(tx: Tx, wake: Wake): Promise<RunRow | null> {
  if (wake.triggerSource !== 'assignment' && wake.triggerSource !== 'mention') return null
  const taskId = wake.task?.id ?? null
  for (const run of await listLiveOfAgent(tx, wake.agent.id)) {
    if (run.status !== 'queued' || run.triggerSource !== wake.triggerSource || run.taskId !== taskId) continue
    if (run.conversationId !== (wake.conversationId ?? null)) continue
    const details = await findDetails(tx, run.id)
    if (wake.prompt === null || details?.prompt === wake.prompt) return run
  }
  return null
}

/** Without what is null: that leaves the task's or the agent's own. */
const given = (overrides: RunOverrides): RunOverrides =>
  Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== null))

const overridesOf = (task: WakeTask | null): RunOverrides => ({
  environment: task?.environment ?? null,
  harness: task?.harness ?? null,
  model: task?.modelId ?? null,
  reasoningEffort: task?.reasoningEffort ?? null,
})
