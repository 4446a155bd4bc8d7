import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Log } from '../process/log.ts'
import { giveUpDeliveries } from '../resources/webhooks/delivery-store.ts'
import { disableWebhook, type WebhookRow } from '../resources/webhooks/store.ts'

/** Disables a webhook, and gives up what waits for it. */
export async function disableFor(
  { root, world, log }: { root: Knex; world: World; log: Log },
  { id }: Pick<WebhookRow, 'id'>,
  reason: 'gone' | 'failing' | 'owner_left',
): Promise<void> {
  const isNew = await inTransaction(root, async (tx) => {
    if (!(await disableWebhook(tx, id, { reason, at: world.now() }))) return false
    await giveUpDeliveries(tx, id, 'The webhook was disabled.')
    return true
  })
  if (isNew) log.warn({ webhook: id, reason }, 'a webhook was disabled')
}
