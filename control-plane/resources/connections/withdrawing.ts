import { inTransaction } from '../../db/transaction.ts'
import { VaultError } from '../../vault/vault.ts'
import { openCredential } from './own/credential.ts'
import { ProviderRefusal, ProviderTrouble, withdrawTokens } from './own/oauth.ts'
import { providerThatGave } from './own/provider-of-held.ts'
import type { RenewalDependencies } from './renewal.ts'
import { claimWithdrawal, removeWithdrawal, type WithdrawalRow } from './withdrawal-store.ts'

const minuteMs = 60_000
/** The time that is waited after each try but the last. */
const againMs = [minuteMs, 5 * minuteMs, 30 * minuteMs, 120 * minuteMs] as const

/**
 * Tells providers that tokens are of no more use, once their connection is gone with its workspace or person:
 *
 *   queued ── claimed ──> asked ── withdrawn, refused, or asked for the last time ──> gone
 *     ^                     └──── out of reach; killed ──┐
 *     └───────────── later, until the tries are used up ─┘
 *
 * To withdraw a token twice is harmless (RFC 7009, section 2.2).
 */
export async function withdrawQueued(deps: RenewalDependencies, row: WithdrawalRow): Promise<void> {
  const { root, world, log, outbound } = deps
  const told = { connectionId: row.connectionId, service: row.serviceId }
  const nextMs = againMs[row.tries] ?? null
  const nextAt = world.now() + (nextMs ?? minuteMs)
  if (!(await inTransaction(root, (tx) => claimWithdrawal(tx, row, nextAt)))) return
  try {
    const held = openCredential(deps.vault, row.connectionId, row.credential)
    const provider = held.kind === 'oauth' ? await providerThatGave(deps, row, held) : null
    if (held.kind === 'oauth' && provider !== null) {
      await withdrawTokens(provider, held, outbound)
      log.info(told, 'the tokens of a connection that is gone were withdrawn')
    }
  } catch (error) {
    const isKnown = [ProviderRefusal, ProviderTrouble, VaultError].some((kind) => error instanceof kind)
    if (!isKnown && nextMs !== null) throw error
    const isOver = !(error instanceof ProviderTrouble) || nextMs === null
    log.warn({ ...told, reason: (error as Error).message, isOver }, 'a provider did not withdraw tokens')
    if (!isOver) return
  }
  await inTransaction(root, (tx) => removeWithdrawal(tx, row.id))
}
