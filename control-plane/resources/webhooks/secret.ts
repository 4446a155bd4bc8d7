import { createHmac } from 'node:crypto'
import type { WebhookId } from '../../../shared/lib/ids.ts'
import { base62, type World } from '../../../shared/lib/world.ts'
import type { Vault } from '../../vault/vault.ts'
import type { WebhookRow } from './store.ts'

// Secrets of webhooks, and what they sign.

const boundTo = (id: WebhookId) => `${id}:secret`

/** A new secret, in clear to be shown once, and sealed for its row alone. */
export function makeSecret(
  vault: Pick<Vault, 'seal'>,
  id: WebhookId,
  world: World,
): { secret: string; sealed: Buffer } {
  const secret = `whsec_${base62(world.bytes(96), 40)}`
  return { secret, sealed: vault.seal(boundTo(id), secret) }
}

/** The secrets that sign now, the present one first. Throws `VaultError` when they were sealed with another key. */
export function signingSecrets(
  vault: Pick<Vault, 'open'>,
  { id, secret, oldSecret, oldSecretUntil }: Pick<WebhookRow, 'id' | 'secret' | 'oldSecret' | 'oldSecretUntil'>,
  now: number,
): string[] {
  const isOldValid = oldSecret !== null && oldSecretUntil !== null && now < oldSecretUntil
  return [secret, ...(isOldValid ? [oldSecret] : [])].map((sealed) => vault.open(boundTo(id), sealed))
}

/** The header `svc-signature`: the time in seconds, and an HMAC-SHA256 of `<time>.<body>` by each secret. */
export function signatureOf(body: string, { secrets, now }: { secrets: readonly string[]; now: number }): string {
  const t = Math.floor(now / 1_000)
  const signed = secrets.map((secret) => `v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`)
  return [`t=${t}`, ...signed].join(',')
}
