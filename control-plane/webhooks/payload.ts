import type { Webhook } from '../../shared/api/webhook-fields.ts'
import { toTimestamp } from '../../shared/api/ids.ts'
import { byteLength } from '../../shared/lib/byte-length.ts'
import type { WebhookEventRow } from '../resources/webhooks/event-store.ts'
import { cut } from './cut.ts'
import { slackTextOf } from './slack.ts'

// The body of a delivery. It is made once, so that each attempt sends the same bytes.

/** The most bytes of a body. */
export const mostPayloadBytes = 32 * 1024

type Thing = Readonly<Record<string, unknown>>

/** What is sent of an event: `data` is the thing as the API shows it, long texts and lists cut where it is large. */
export function payloadOf(
  event: Pick<WebhookEventRow, 'id' | 'type' | 'workspaceId' | 'change' | 'createdAt'>,
  data: Thing,
  { form, publicUrl }: { form: Webhook['form']; publicUrl: string },
): string {
  if (form === 'slack') return JSON.stringify({ text: slackTextOf(event, data, publicUrl) })
  const whole = (shown: Thing, isCut: boolean) =>
    JSON.stringify({
      object: 'event',
      id: event.id,
      type: event.type,
      createdAt: toTimestamp(event.createdAt),
      workspaceId: event.workspaceId,
      ...(event.change !== null && { change: event.change }),
      data: shown,
      ...(isCut && { truncated: true }),
    })
  const forms = [
    () => whole(data, false),
    () => whole(cut(data, { chars: 4_000, items: 50 }) as Thing, true),
    () => whole(cut(data, { chars: 300, items: 10 }) as Thing, true),
  ]
  for (const form of forms) {
    const text = form()
    if (byteLength(text) <= mostPayloadBytes) return text
  }
  return whole({ object: data['object'], id: data['id'] }, true)
}
