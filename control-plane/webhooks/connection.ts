import { webhookLimits } from '../../shared/api/webhook-fields.ts'
import { createBodyRooms } from '../http/body-room.ts'
import { removeOldWebhookDeliveries } from '../resources/webhooks/delivery-store.ts'
import { removeOldEvents } from '../resources/webhooks/event-store.ts'
import type { Sweep } from '../sweeps/sweeper.ts'
import { WebhookSender, type WebhookSenderOptions } from './sender.ts'

export interface Webhooks {
  sender: WebhookSender
  sweeps: readonly Sweep[]
}

const dayMs = 24 * 3_600_000

/** Creates what sends to webhooks. Events are found by time, so that recording one costs no word to anybody. */
export function createWebhooks({
  everyMs,
  ...options
}: Omit<WebhookSenderOptions, 'answers'> & { everyMs: number }): Webhooks {
  const sender = new WebhookSender({ ...options, answers: createBodyRooms(options.world).answers })
  return {
    sender,
    sweeps: [
      {
        name: 'webhooks',
        everyMs,
        // The sweep does not wait for it: a slow receiver must not hold up other sweeps.
        run: async () => sender.begin(),
        idle: () => sender.idle(),
      },
      {
        name: 'old_webhook_deliveries',
        everyMs: 3_600_000,
        run: async ({ root, now }) => {
          await removeOldEvents(root, now - dayMs)
          await removeOldWebhookDeliveries(root, now - webhookLimits.keptDays * dayMs)
        },
      },
    ],
  }
}
