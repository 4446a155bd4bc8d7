import type { Knex } from 'knex'
import { inPages } from '../db/in-pages.ts'
import type { WakeAnswer, WakeContext } from '../wakes/wake.ts'
import { fire, type FireOutcome } from '../resources/automations/steps/fire.ts'
import { removeOldSkips } from '../resources/automations/fire-store.ts'
import { dueInstant } from '../resources/automations/schedule.ts'
import {
  claimDue,
  listDue,
  replaceNextFire,
  type AutomationRow,
  type DueAutomation,
} from '../resources/automations/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'
import { inTransaction } from '../db/transaction.ts'

export interface DueAutomationsOptions {
  everyMs: number
  context: WakeContext
}

const pageSize = 200

/**
 * Fires schedules that are due. Each fire is one transaction: the claim of the row (a replica that finds it locked or
 * changed skips it), the fire, its run, and the next instant. So an instant fires at most once, whichever replica dies
 * at which point. The occasion, which is unique for each automation, protects even against a clock that goes back.
 */
export function dueAutomationsSweep(options: DueAutomationsOptions): Sweep {
  return {
    name: 'due_automations',
    everyMs: options.everyMs,
    async run({ root, now, log, lines }) {
      for await (const page of inPages<DueAutomation>(pageSize, (next) => listDue(root, { now, ...next })))
        for (const due of page) lines.add(due.workspaceId, () => fireOne(due, { root, now, log, options }), due.id)
    },
  }
}

async function fireOne(
  due: { id: string; at: number },
  { root, now, log, options }: Pick<SweepContext, 'now' | 'log'> & { root: Knex; options: DueAutomationsOptions },
): Promise<void> {
  let fired: FireOutcome | null
  try {
    fired = await inTransaction(root, async (tx) => {
      const automation = await claimDue(tx, due)
      return automation && (await fireAtInstant(tx, { automation, now }, options.context))
    })
  } catch (error) {
    // It stays due and is tried again in the next pass; the others must not wait for it.
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
    requestedBy: null,
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

const day = 24 * 3_600_000

/** Removes skips that are 90 days old, because a paused automation records one at each of its instants. */
export const oldSkipsSweep: Sweep = {
  name: 'old_skips',
  everyMs: 3_600_000,
  run: async ({ root, now }) => void (await removeOldSkips(root, now - 90 * day)),
}
