import { placeOfEnvironment } from '../places/places.ts'
import type { ApprovalId, QuestionId, RunId } from '../../../shared/lib/ids.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import type { WorkspaceRow } from '../../resources/workspaces/store.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'

/** The decision about a wake. Its kinds are those of the start-run response of the API. */
export type Admission = { kind: 'admit' } | { kind: 'coalesced'; intoRunId: RunId } | Decline | Refusal

interface Decline {
  kind: 'declined'
  exitReason: ExitReason
  message: string
}

export interface Refusal {
  kind: 'not_dispatched'
  reason: NotDispatchedReason
  message: string
  /** The approval or question that waits for a person, with `task_hitl_open`. */
  blockedBy?: { kind: 'approval' | 'question'; id: ApprovalId | QuestionId }
  /** The code of the reason why its harness has no key in the cloud, as the routes that start a run give it. */
  code?: 'credits_harness_unsupported' | 'credential_unbrokerable'
}

export type NotDispatchedReason =
  | 'agent_inactive'
  | 'agent_tombstoned'
  | 'workspace_agents_paused'
  | 'budget_blocked'
  | 'timer_all_tasks_hitl_paused'
  | 'task_hitl_open'
  | 'task_blocked_dependency'
  | 'task_already_finished'
  | 'task_not_started'
  | 'task_unassigned'
  | 'folder_bind_failed'
  | 'route_gate_declined'
  | 'dispatch_build_failed'

/** The facts of the task that a wake is for. */
export interface TaskFacts {
  key: string
  /** The task is finished, or is in the archive and the wake is not of a step that works on it all the same. */
  isFinished: boolean
  /** The task is set to begin later. */
  startsLater: boolean
  hasOpenBlocker: boolean
  openHold: { kind: 'approval' | 'question'; id: ApprovalId | QuestionId } | null
  /** The wake says that the task was assigned to this agent, and it is not. */
  isOthers: boolean
}

export interface WakeFacts {
  agent: Pick<AgentRow, 'status' | 'deletedAt' | 'name'>
  environment: 'device' | 'cloud'
  task: TaskFacts | null
  workspace: Pick<WorkspaceRow, 'agentsPaused' | 'status' | 'cloudEnabled' | 'isBillingLocked'>
  /** Whether the agent's default folder can be used; null: it has none. */
  folder: 'bound' | 'missing' | null
  cloudEnabled: boolean
  /** A timer wakes the agent, and all the work it has waits for people. */
  isTimerInVain: boolean
  /** A webhook wakes an agent that is set not to be woken by any. */
  isUnwantedHook: boolean
  /** The one whose monthly budget is spent. */
  spentBudget: 'agent' | 'workspace' | null
  /** A queued run of the same agent, source and task whose prompt says the same or to which nothing is added. */
  sameQueuedRunId: RunId | null
}

export function admit(facts: WakeFacts): Admission {
  const { agent } = facts
  const refused = agentRefusal(facts)
  if (refused) return refused
  const held = facts.task && taskRefusal(facts.task)
  if (held) return held
  if (facts.isTimerInVain)
    return refuse('timer_all_tasks_hitl_paused', `All open tasks of ${agent.name} wait for a person.`)
  if (facts.workspace.isBillingLocked) return decline('billing_locked', locked)
  const allowed = { onServer: facts.cloudEnabled, inWorkspace: facts.workspace.cloudEnabled }
  const closed = placeOfEnvironment(facts.environment).whyClosed(allowed)
  if (closed) return decline(closed.exitReason, closed.message)
  const spent = budgetRefusal(facts)
  if (spent) return spent
  if (facts.folder === 'missing')
    return refuse('folder_bind_failed', `The default folder of ${agent.name} was removed; give it another one.`)
  if (facts.sameQueuedRunId !== null) return { kind: 'coalesced', intoRunId: facts.sameQueuedRunId }
  return { kind: 'admit' }
}

/** Decides whether a workflow may be started in the name of an agent, as far as the agent and its workspace allow wakes. */
export const admitWorkflow = (
  facts: Pick<WakeFacts, 'agent' | 'workspace' | 'isUnwantedHook' | 'spentBudget'>,
): Refusal | null => agentRefusal(facts) ?? lockRefusal(facts) ?? budgetRefusal(facts)

const locked = 'The operator of this server locked the company of this workspace.'

/** The documents name no reason of its own for a workflow, whose start makes no run that could be declined. */
const lockRefusal = ({ workspace }: Pick<WakeFacts, 'workspace'>): Refusal | null =>
  workspace.isBillingLocked ? refuse('workspace_agents_paused', locked) : null

function agentRefusal({
  agent,
  workspace,
  isUnwantedHook,
}: Pick<WakeFacts, 'agent' | 'workspace' | 'isUnwantedHook'>): Refusal | null {
  if (agent.deletedAt !== null) return refuse('agent_tombstoned', `${agent.name} is deleted; restore it to run it.`)
  if (agent.status !== 'active')
    return refuse('agent_inactive', `${agent.name} is ${agent.status}; only an active agent takes wakes.`)
  // The documents have no reason of its own for it; that its agents are paused, too, is not what must be undone first.
  if (workspace.status === 'archived')
    return refuse('workspace_agents_paused', 'This workspace is archived, so its agents take no wakes.')
  if (workspace.agentsPaused) return refuse('workspace_agents_paused', 'The agents of this workspace are paused.')
  // The agent's `wakeOnHook` is off.
  if (isUnwantedHook) return refuse('route_gate_declined', `${agent.name} is set not to be woken by webhooks.`)
  return null
}

function budgetRefusal({ agent, spentBudget }: Pick<WakeFacts, 'agent' | 'spentBudget'>): Refusal | null {
  if (spentBudget === null) return null
  const whose = spentBudget === 'agent' ? `The monthly budget of ${agent.name}` : "The workspace's monthly budget"
  return refuse('budget_blocked', `${whose} is spent; raise it, or wait for the next month.`)
}

const decline = (exitReason: Decline['exitReason'], message: string): Decline => ({
  kind: 'declined',
  exitReason,
  message,
})

const refuse = (reason: NotDispatchedReason, message: string): Refusal => ({ kind: 'not_dispatched', reason, message })

/** The one that finished a task, as a workflow sees it: `platform` is a merge of its pull request. */
export type FinishedBy = 'own_step' | 'platform' | 'somebody'

/**
 * Tells whether a step works on the task of its workflow run though the task is finished or in the archive. A workflow that was started on
 * such a task is about it as it is, and one whose own step or pull request finished it goes on to its end. Whoever else finishes or
 * archives it meanwhile stops the work. Nothing of this reopens the task.
 */
export function stepWorksOn(
  { completedAt, cancelledAt, archivedAt }: { [at in 'completedAt' | 'cancelledAt' | 'archivedAt']: number | null },
  { beganAt, finishedBy }: { beganAt: number; finishedBy: FinishedBy | null },
): boolean {
  const finishedAt = completedAt ?? cancelledAt
  const isArchivedMeanwhile = archivedAt !== null && archivedAt > beganAt
  const isFinishedMeanwhile = finishedAt !== null && finishedAt > beganAt
  return !isArchivedMeanwhile && !(isFinishedMeanwhile && finishedBy === 'somebody')
}

function taskRefusal(task: TaskFacts): Refusal | null {
  const { key } = task
  if (task.isFinished)
    return refuse('task_already_finished', `${key} is finished or archived; reopen it to work on it.`)
  if (task.isOthers) return refuse('task_unassigned', `${key} is not assigned to this agent.`)
  if (task.openHold) {
    const what = task.openHold.kind === 'approval' ? 'an open approval' : 'an open question'
    const message = `${key} waits for a person: ${what}, ${task.openHold.id}.`
    return { ...refuse('task_hitl_open', message), blockedBy: task.openHold }
  }
  if (task.hasOpenBlocker) return refuse('task_blocked_dependency', `${key} waits for a task that blocks it.`)
  if (task.startsLater) return refuse('task_not_started', `${key} is set to start later.`)
  return null
}
