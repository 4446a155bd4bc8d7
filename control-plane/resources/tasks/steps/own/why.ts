import { toTimestamp } from '../../../../../shared/api/ids.ts'
import type { AgentStatus } from '../../../../../shared/api/agents.ts'
import type { TaskWhy } from '../../../../../shared/api/task-why.ts'
import type { RunId, WorkflowRunId } from '../../../../../shared/lib/ids.ts'
import type { Admission } from '../../../../run/wakes/admission.ts'
import type { OpenHold } from '../../../approvals/open-holds.ts'
import { whyAsked, type RunAnswer } from '../../../runs/why.ts'
import type { LinkedTask } from '../../own/dependency-store.ts'
import { isFinished } from '../../rules.ts'
import type { TaskRow } from '../../store.ts'

/** Blockers that are named; a task may have hundreds. */
const namedBlockers = 10
/** Blockers that stand in the sentence. */
const saidBlockers = 3

export interface TaskWhyFacts {
  task: TaskRow
  /** What it waits for, where that is a person. */
  hold: OpenHold | 'hidden' | null
  /** A live run of it, and why that is as it is; null: there is none. */
  live: { run: RunId; answer: RunAnswer } | 'hidden' | null
  /** The last run of it that the caller sees. */
  last: { run: RunId; answer: RunAnswer } | null
  /** A workflow that is about it and not over. */
  workflow: { id: WorkflowRunId; isStalled: boolean; since: number } | null
  /** Its agent; null: it is assigned to nobody. */
  agent: { handle: string; wakeOnAssignment: boolean } | 'hidden' | null
  /**
   * What would become of a wake of its agent now; null: nobody can be woken, or the caller does not see whom. `towardsActive`: the status
   * by which the agent comes nearer to being active; null: none.
   */
  gate: {
    admission: Admission
    spentBudget: 'agent' | 'workspace' | null
    isPaused: boolean
    towardsActive: AgentStatus | null
  } | null
  /** Unfinished tasks that block it and that the caller sees, oldest first, and how many there are beside them. */
  blockers: { seen: readonly LinkedTask[]; hidden: number }
  now: number
}

type Answer = Omit<TaskWhy, 'object' | 'task' | 'blockedBy' | 'moreBlockers'>

/**
 * Says what holds a task, or what works on it, what happens next, and the command that helps. The first of these that is so is said:
 * its end, a person's answer, its run, its workflow, its review, that nobody has it, what would refuse a wake of its agent, and last
 * what became of its last run. Pure.
 */
export function taskWhyOf(facts: TaskWhyFacts): Omit<TaskWhy, 'object' | 'task'> {
  const { seen, hidden } = facts.blockers
  const named = seen.slice(0, namedBlockers)
  return {
    ...answerOf(facts),
    blockedBy: named.map(({ task: { id, key, title, status } }) => ({ id, key, title, status })),
    moreBlockers: seen.length - named.length + hidden,
  }
}

function answerOf(facts: TaskWhyFacts): Answer {
  const { task, hold, live, workflow, agent, gate } = facts
  if (isFinished(task) || task.archivedAt !== null) return over(task)
  if (hold !== null) return hold === 'hidden' ? unseenHold : { ...whyAsked(hold), run: null }
  if (live !== null) return live === 'hidden' ? unseenRun : byRun(live)
  if (workflow !== null) return byWorkflow(workflow)
  if (task.status === 'in_review') return inReview(task)
  if (agent === null) return unassigned(task)
  if (agent === 'hidden') return unseenAgent
  const refused = gate === null || gate.admission.kind === 'admit' ? null : refusedBy(facts, gate, agent.handle)
  return refused ?? notWoken(facts, agent)
}

const nothing = 'Nothing, until somebody does something about it.'
const withoutRun = { nextAt: null, run: null } as const

function over({ key, status, completedAt, cancelledAt, archivedAt }: TaskRow): Answer {
  const isArchived = archivedAt !== null
  const what = status === 'done' ? 'It is done' : status === 'cancelled' ? 'It was cancelled' : 'It is in the archive'
  return {
    ...withoutRun,
    state: 'ended',
    reason: status === 'done' || status === 'cancelled' ? status : 'archived',
    because: isArchived && isFinished({ status }) ? `${what}, and in the archive.` : `${what}.`,
    since: toTimestamp(completedAt ?? cancelledAt ?? archivedAt),
    next: 'Nothing: nobody works on it any more.',
    command: isArchived ? `svc task unarchive ${key}` : `svc task transition ${key} --status open --reason "..."`,
  }
}

const unseenHold: Answer = {
  ...withoutRun,
  state: 'asks',
  reason: null,
  because: 'It waits for a person who was asked what you do not see.',
  since: null,
  next: 'Its agent goes on when somebody has answered.',
  command: null,
}

const byRun = ({ run, answer }: { run: RunId; answer: RunAnswer }): Answer => ({
  ...answer,
  because: `Its run ${run}: ${answer.because}`,
  run,
})

const unseenRun: Answer = {
  ...withoutRun,
  state: 'works',
  reason: null,
  because: 'A run that you do not see works on it, or waits to.',
  since: null,
  next: 'It goes on when that has ended.',
  command: null,
}

function byWorkflow({ id, isStalled, since }: NonNullable<TaskWhyFacts['workflow']>): Answer {
  const base = { ...withoutRun, reason: 'workflow_running', next: 'It goes on with the next step by itself.' } as const
  return {
    ...base,
    state: 'waits',
    because: isStalled ? `Its workflow run ${id} is stalled.` : `Its workflow run ${id} is between two steps.`,
    since: toTimestamp(since),
    ...(isStalled && { reason: 'workflow_stalled', next: nothing }),
    command: `svc workflow runs watch ${id}`,
  }
}

const inReview = ({ key, updatedAt }: TaskRow): Answer => ({
  ...withoutRun,
  state: 'waits',
  reason: 'in_review',
  because: 'Its work waits for a review.',
  since: toTimestamp(updatedAt),
  next: 'Nothing, until somebody moves it on.',
  command: `svc task transition ${key} --status done`,
})

const unassigned = ({ key, createdAt }: TaskRow): Answer => ({
  ...withoutRun,
  state: 'waits',
  reason: 'unassigned',
  because: 'It is assigned to nobody.',
  since: toTimestamp(createdAt),
  next: 'Nothing, until somebody gives it to an agent.',
  command: reassign({ key }),
})

const reassign = ({ key }: Pick<TaskRow, 'key'>) => `svc task assign ${key} --assignee "..."`

const unseenAgent: Answer = {
  ...withoutRun,
  state: 'waits',
  reason: null,
  because: 'It is assigned to an agent that you do not see.',
  since: null,
  next: 'Whoever has that agent knows.',
  command: null,
}

/** null: nothing refuses a wake. */
function refusedBy(
  { task, blockers, now }: TaskWhyFacts,
  { admission, spentBudget, isPaused, towardsActive }: NonNullable<TaskWhyFacts['gate']>,
  handle: string,
): Answer | null {
  if (admission.kind !== 'not_dispatched' && admission.kind !== 'declined') return null
  const reason = admission.kind === 'declined' ? admission.exitReason : admission.reason
  const base: Answer = {
    ...withoutRun,
    state: 'waits',
    reason,
    because: admission.message,
    since: null,
    next: `Nothing by itself: when that is mended, somebody has to wake its agent (${wakes(task, handle)}).`,
    command: `svc agent doctor ${handle}`,
  }
  switch (reason) {
    case 'task_blocked_dependency':
      return blocked(base, { task, ...blockers })
    case 'task_not_started': {
      const next = 'Its agent is woken then.'
      return {
        ...base,
        next,
        nextAt: toTimestamp(task.startAt),
        command: `svc task update ${task.key} --start-at none`,
      }
    }
    case 'agent_inactive':
      return {
        ...base,
        command: towardsActive === null ? reassign(task) : `svc agent update ${handle} --status ${towardsActive}`,
      }
    case 'agent_tombstoned':
      return { ...base, command: `svc agent restore ${handle}` }
    case 'workspace_agents_paused':
      // Else the workspace is in the archive.
      return { ...base, command: isPaused ? 'svc workspace resume-agents' : null }
    case 'budget_blocked': {
      const whose = spentBudget === 'agent' ? `agent config set ${handle}` : 'workspace update'
      const nextAt = toTimestamp(nextMonth(now))
      return { ...base, nextAt, command: `svc ${whose} --monthly-budget-cents "..."` }
    }
    case 'billing_locked':
      return { ...base, command: null }
    default:
      return base
  }
}

const wakes = ({ key }: TaskRow, handle: string) => `\`svc agent run ${handle} --task-id ${key}\``

/** The beginning of the next month, as budgets count months. */
const nextMonth = (now: number): number => {
  const at = new Date(now)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1)
}

function blocked(
  base: Answer,
  { task, seen, hidden }: { task: TaskRow; seen: readonly LinkedTask[]; hidden: number },
): Answer {
  const said = seen.slice(0, saidBlockers).map(({ task: { key, status } }) => `${key} (${status})`)
  const more = seen.length - said.length + hidden
  const rest = said.length === 0 ? `${more} that you do not see` : `${more} more`
  const names = more === 0 ? said : [...said, rest]
  const since = seen.length === 0 ? null : Math.max(task.createdAt, Math.min(...seen.map(({ createdAt }) => createdAt)))
  return {
    ...base,
    because: `It waits for tasks that are not finished: ${names.join(', ')}.`,
    since: toTimestamp(since),
    next: 'Its agent is woken when the last of them is finished.',
    command: seen[0] === undefined ? null : `svc why ${seen[0].task.key}`,
  }
}

/** Nothing holds it: its last run has ended, or there was none. */
function notWoken(
  { task, last }: TaskWhyFacts,
  { handle, wakeOnAssignment }: { handle: string; wakeOnAssignment: boolean },
): Answer {
  const command = `svc agent run ${handle} --task-id ${task.key}`
  const next = 'Nothing, until somebody wakes its agent.'
  if (last !== null) {
    const { answer, run } = last
    const isRetried = answer.command?.startsWith('svc run retry ') === true
    const because = `Nobody works on it. Its last run ${run}: ${answer.because}`
    return {
      ...answer,
      state: 'waits',
      because,
      run,
      next,
      nextAt: null,
      command: isRetried ? answer.command : command,
    }
  }
  const base = { ...withoutRun, state: 'waits', since: toTimestamp(task.updatedAt), next, command } as const
  return wakeOnAssignment
    ? { ...base, reason: 'not_woken', because: 'Nothing holds it. No run of its agent came of it that you see.' }
    : { ...base, reason: 'wake_on_assignment_off', because: `${handle} is set not to be woken by assignments.` }
}
