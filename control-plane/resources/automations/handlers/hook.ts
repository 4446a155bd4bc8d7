import { createHash } from 'node:crypto'
import type { AutomationFire } from '../../../../shared/api/automation-fields.ts'
import type { automationRoutes } from '../../../../shared/api/automations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Tx } from '../../../db/open.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { hashToken } from '../../../http/token-hash.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findRunOfBody } from '../fire-store.ts'
import { fire, presentFire, recordSkip } from '../steps/fire.ts'
import { countCall, promptWithBody } from '../own/rules.ts'
import { findWorkspaceOfToken, lockAutomationByToken, recordCall } from '../store.ts'
import type { Knex } from 'knex'
import { inTransaction } from '../../../db/transaction.ts'

type Dependencies = Pick<ResourceDependencies, 'wakeContext'>

// Handles a call of a webhook: counts it, compares it with the bodies of the last 24 hours, then fires. All of it is
// one transaction, so of two equal calls at once the second one sees the run of the first.

/** A body sent again within this time gets the run of the first call; calls without one are never the same (ADR 0046). */
const rememberedMs = 24 * 3_600_000

type Outcome = { kind: 'answered'; reply: AutomationFire } | { kind: 'limited'; waitMs: number } | { kind: 'unknown' }

export async function hookHandler(
  { db, params, body, contentType, world }: HandlerInput<typeof automationRoutes.hook>,
  deps: Dependencies,
): Promise<AutomationFire> {
  const tokenHash = hashToken(params.token)
  const workspaceId = await findWorkspaceOfToken(db, tokenHash)
  if (workspaceId === null) return fail('automation_not_found')
  // Each call writes the row of the automation: without a turn, those that come at once would undo each other.
  const work = (tx: Tx) => takeCall(tx, { tokenHash, body, contentType, world }, deps)
  const outcome = await inTransaction(db as Knex, work, { locks: [workspaceId] })
  if (outcome.kind === 'unknown') return fail('automation_not_found')
  if (outcome.kind === 'limited') {
    const retryAfter = Math.max(1, Math.ceil(outcome.waitMs / 1000))
    const headers = { 'Retry-After': String(retryAfter) }
    return fail('rate_limit_exceeded', { details: { retryAfter }, headers })
  }
  return outcome.reply
}

async function takeCall(
  tx: Tx,
  {
    tokenHash,
    body,
    contentType,
    world,
  }: { tokenHash: string; body: Uint8Array; contentType: string | null; world: World },
  deps: Dependencies,
): Promise<Outcome> {
  const automation = await lockAutomationByToken(tx, tokenHash)
  if (automation === null) return { kind: 'unknown' }
  const now = world.now()
  const { count, waitMs, isRecorded } = countCall(automation, now)
  await recordCall(tx, automation.id, count)
  if (waitMs !== null) {
    const message = 'The webhook was called more than 60 times within an hour.'
    if (isRecorded) await recordSkip(tx, { automation, reason: 'rate_limited', message }, world)
    return { kind: 'limited', waitMs }
  }
  const bodyHash = body.length === 0 ? null : createHash('sha256').update(body).digest('hex')
  const of = { automationId: automation.id, since: now - rememberedMs }
  const first = bodyHash === null ? null : await findRunOfBody(tx, { ...of, bodyHash })
  if (first !== null) return { kind: 'answered', reply: { object: 'automation_fire', kind: 'triggered', runId: first } }
  const prompt = promptWithBody(automation.prompt, body, contentType)
  const cause = {
    triggerSource: 'webhook',
    requestedByRef: null,
    prompt,
    ...(bodyHash !== null && { bodyHash }),
  } as const
  const outcome = await fire(tx, { automation, cause }, deps.wakeContext)
  if (outcome.kind === 'repeated') throw new Error('a call of a webhook has no occasion')
  return { kind: 'answered', reply: presentFire(outcome) }
}
