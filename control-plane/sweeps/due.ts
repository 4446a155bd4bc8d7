import type { AutomationId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { inPages } from '../db/table.ts'
import type { WakeAnswer, WakeContext } from '../run/wakes/wake.ts'
import { fire, type FireOutcome } from '../resources/automations/steps/fire.ts'
import { dueInstant } from '../resources/automations/schedule.ts'
import {
  claimDue,
  listDue,
  replaceNextFire,
  type AutomationRow,
  type DueAutomation,
} from '../resources/automations/store.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Tx } from '../db/open.ts'
import { systemActor } from '../resources/tasks/rules.ts'
import { claimDueStart, findTaskById, listDueStarts, type DueStart } from '../resources/tasks/store.ts'
import { wakeForAssignment } from '../resources/tasks/steps/wakes.ts'
import { closeBySystem } from '../resources/questions/steps/answer.ts'
import { listOverdueQuestions } from '../resources/questions/store.ts'
import { trialMs, thawMs } from '../resources/quotas/rules.ts'
import { listWorkspacesWithTrial, listWorkspacesWithReset } from '../resources/quotas/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'

const tasksPerPage = 200

/**
 * Wakes the assignees of tasks whose scheduled start (`startAt`) has come, once each: the same transaction requests the
 * wake and removes the time from the task.
 */
export function scheduledTasksSweep(options: { everyMs: number }): Sweep {
  return {
    name: 'scheduled_tasks',
    everyMs: options.everyMs,
    async run(context) {
      const { root, now, queue } = context
      for await (const page of inPages<DueStart>(tasksPerPage, (next) => listDueStarts(root, { now, ...next })))
        for (const task of page) queue.add(task.workspaceId, () => startOne(context, task), task.id)
    },
  }
}

async function startOne({ root, world }: SweepContext, task: DueStart): Promise<void> {
  const start = async (tx: Tx) => {
    if (!(await claimDueStart(tx, task))) return
    const current = await findTaskById(tx, task.id)
    if (current === null) return
    const reason = 'The scheduled start of this task has come.'
    const key = `scheduled_start:${task.id}:${task.wakeAt}`
    await wakeForAssignment(tx, { task: current, actor: systemActor, world, reason, key })
  }
  await inTransaction(root, start, { locks: [task.workspaceId] })
}

interface DueAutomationsOptions {
  everyMs: number
  context: WakeContext
}

const automationsPerPage = 200

/**
 * Fires schedules that are due. Each fire is one transaction: the claim of the row (a replica that finds it locked or
 * changed skips it), the fire, its run, and the next instant. So an instant fires at most once, whichever replica dies
 * at which point. The occasion, which is unique for each automation, protects even against a clock that goes back.
 */
export function dueAutomationsSweep(options: DueAutomationsOptions): Sweep {
  return {
    name: 'due_automations',
    everyMs: options.everyMs,
    async run({ root, now, log, queue }) {
      for await (const page of inPages<DueAutomation>(automationsPerPage, (next) => listDue(root, { now, ...next })))
        for (const due of page) queue.add(due.workspaceId, () => fireOne(due, { root, now, log, options }), due.id)
    },
  }
}

async function fireOne(
  due: { id: AutomationId; at: number },
  { root, now, log, options }: Pick<SweepContext, 'now' | 'log'> & { root: Knex; options: DueAutomationsOptions },
): Promise<void> {
  let fired: FireOutcome | null
  try {
    fired = await inTransaction(root, async (tx) => {
      const automation = await claimDue(tx, due)
      return automation && (await fireAtInstant(tx, { automation, now }, options.context))
    })
  } catch (error) {
    // The automation stays due and is tried again in the next pass; the others must not wait for it.
    log.error({ err: error, automationId: due.id }, 'an automation could not be fired')
    return
  }
  if (fired === null || fired.kind === 'repeated') return
  log.info({ automationId: due.id, ...describe(fired) }, 'automation fired')
}

async function fireAtInstant(
  tx: Knex.Transaction,
  { automation, now }: { automation: AutomationRow; now: number },
  context: WakeContext,
): Promise<FireOutcome | null> {
  const { cron, timezone, nextFireAt } = automation
  if (cron === null || timezone === null || nextFireAt === null) return null
  const { instant, next } = dueInstant({ cron, timezone }, { due: nextFireAt, now })
  await replaceNextFire(tx, automation.id, next)
  if (instant === null) return null
  const cause = {
    triggerSource: 'cron',
    requestedByRef: null,
    prompt: automation.prompt,
    occasion: `schedule ${instant}`,
  } as const
  return fire(tx, { automation, cause }, context)
}

function describe(fired: Exclude<FireOutcome, { kind: 'repeated' }>): Record<string, unknown> {
  if (fired.kind === 'skipped') return { skipped: fired.reason }
  if ('workflowRunId' in fired) return { workflowRunId: fired.workflowRunId }
  const answer: WakeAnswer = fired.answer
  return { runId: fired.runId, ...(answer.kind === 'not_dispatched' ? { refused: answer.reason } : {}) }
}

/** The number of questions that one round handles, the longest overdue first. */
const questionsPerRound = 1_000

/** Closes questions whose runs have waited for an answer as long as they said. Each closing is a compare-and-set. */
export const overdueQuestionsSweep = ({ everyMs }: { everyMs: number }): Sweep => ({
  name: 'overdue_questions',
  everyMs,
  async run({ root, now, world, queue }) {
    for (const question of await listOverdueQuestions(root, { now, limit: questionsPerRound })) {
      const { id, workspaceId } = question
      const close = (tx: Tx) => closeBySystem(tx, question, { reason: 'wait_timeout', world })
      queue.add(workspaceId, () => inTransaction(root, close, { locks: [workspaceId] }), id)
    }
  },
})

/** A round may come late. */
const graceMs = 30_000

/**
 * Offers the runs that wait for an account whose limit is over, or for a provider that is tried again. They are placed as all
 * others are, which opens both step by step; so each round looks again until they are open.
 */
export function quotasSweep(options: { everyMs: number; dispatch(workspaceId: WorkspaceUuid): void }): Sweep {
  return {
    name: 'quotas',
    everyMs: options.everyMs,
    async run({ root, now }) {
      const reset = await listWorkspacesWithReset(root, now - thawMs - graceMs, now)
      const tried = await listWorkspacesWithTrial(root, now - trialMs - graceMs, now)
      for (const workspaceId of new Set([...reset, ...tried])) options.dispatch(workspaceId)
    },
  }
}
