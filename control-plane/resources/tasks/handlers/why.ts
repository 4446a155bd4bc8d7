import { taskWhyRoutes } from '../../../../shared/api/task-why.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { implement, type ImplementedRoute } from '../../../http/implement.ts'
import { admissionForTask } from '../../../run/wakes/resolved-wake.ts'
import { seesAgent } from '../../agents/lookup.ts'
import { nextAgentStatuses } from '../../agents/rules.ts'
import { handleText } from '../../agents/present.ts'
import { findAgent } from '../../agents/store.ts'
import { openHoldsOfTasks } from '../../approvals/open-holds.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { seesWork } from '../../projects/work-visibility.ts'
import { listLiveOfTask } from '../../runs/live-store.ts'
import { lookUpRun } from '../../runs/lookup.ts'
import { loadWhyFacts } from '../../runs/steps/present.ts'
import type { RunRow } from '../../runs/store.ts'
import { whyOf } from '../../runs/why.ts'
import { findOpenRunOnTask } from '../../workflows/run-store.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { readableTask, visibleTasks } from '../lookup.ts'
import { listDependencies } from '../own/dependency-store.ts'
import { isFinished } from '../rules.ts'
import { taskWhyOf, type TaskWhyFacts } from '../steps/own/why.ts'
import type { TaskRow } from '../store.ts'
import { runsOfTask } from './included.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs' | 'waits' | 'wakeContext'>
/** Reads the facts for one caller at one time. */
interface Reading {
  caller: Caller
  now: number
  deps: Dependencies
}

const towards = ['active', 'running'] as const

export function taskWhyHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(taskWhyRoutes, {
    async why({ db, caller, params, world }) {
      const task = await readableTask(db, caller, params.id)
      const facts = await loadFacts(db, task, { caller, now: world.now(), deps })
      return { object: 'why', task: { id: task.id, key: task.key }, ...taskWhyOf(facts) }
    },
  })
}

async function loadFacts(db: Db, task: TaskRow, reading: Reading): Promise<TaskWhyFacts> {
  const { caller, now, deps } = reading
  const row = task.assigneeAgentRef === null ? null : await findAgent(db, task.assigneeAgentRef)
  const isSeen = row !== null && (await seesAgent(db, caller, row.id))
  const [last] = await runsOfTask(db, task, { caller, limit: 1 })
  const workspace = await findWorkspace(db, task.workspaceId)
  const gated =
    row === null || !isSeen || workspace === null
      ? null
      : await admissionForTask(
          db,
          { agent: row, task, workspace },
          { cloudEnabled: deps.wakeContext.cloudEnabled, now },
        )
  return {
    task,
    hold: await holdOf(db, task, caller),
    live: await liveOf(db, task, reading),
    last: last === undefined ? null : await answerOf(db, last, reading),
    workflow: await workflowOf(db, task),
    agent:
      row === null ? null : isSeen ? { handle: handleText(row), wakeOnAssignment: row.wakeOnAssignment } : 'hidden',
    gate: gated && {
      ...gated,
      isPaused: workspace?.status === 'active' && workspace.agentsPaused,
      towardsActive:
        row === null ? null : (towards.find((status) => nextAgentStatuses(row.status).includes(status)) ?? null),
    },
    blockers: await blockersOf(db, task, caller),
    now,
  }
}

async function holdOf(db: Db, task: TaskRow, caller: Caller): Promise<TaskWhyFacts['hold']> {
  const hold = (await openHoldsOfTasks(db, [task.id])).get(task.id)?.[0]
  if (hold === undefined) return null
  const table = hold.kind === 'approval' ? 'approvals' : 'questions'
  return (await seesWork(db, caller, { table, id: hold.id })) ? hold : 'hidden'
}

/** The run that works on the task, or else the first of those that wait to. */
async function liveOf(db: Db, task: TaskRow, reading: Reading): Promise<TaskWhyFacts['live']> {
  const runs = await listLiveOfTask(db, task.id)
  const run = runs.find(({ status }) => status === 'running') ?? runs[0]
  return run === undefined ? null : ((await answerOf(db, run, reading)) ?? 'hidden')
}

/** null: the caller does not see the run. */
async function answerOf(db: Db, run: RunRow, { caller, now, deps: { leaseMs, waits } }: Reading) {
  const found = await lookUpRun(db, caller, run.id)
  if (found?.isVisible !== true) return null
  const facts = await loadWhyFacts(db, found.run, { now, leaseMs, agent: found.agent })
  return { run: run.id, answer: whyOf({ ...facts, waits }) }
}

/** Whoever sees the task sees the runs of workflows about it. */
async function workflowOf(db: Db, task: TaskRow): Promise<TaskWhyFacts['workflow']> {
  const run = await findOpenRunOnTask(db, task)
  return run === null ? null : { id: run.id, isStalled: run.status === 'stalled', since: run.createdAt }
}

async function blockersOf(db: Db, task: TaskRow, caller: Caller): Promise<TaskWhyFacts['blockers']> {
  const links = await listDependencies(db, task.id, 'blockedBy')
  const open = links.filter((link) => link.type === 'blocks' && !isFinished(link.task))
  const visible = new Set(
    await visibleTasks(
      db,
      caller,
      open.map((link) => link.task),
    ),
  )
  const seen = open.filter((link) => visible.has(link.task))
  return { seen, hidden: open.length - seen.length }
}
