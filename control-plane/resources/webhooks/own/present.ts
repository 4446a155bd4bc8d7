import type { Webhook, WebhookDelivery, WebhookDeliveryDetail } from '../../../../shared/api/webhook-fields.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { WebhookDeliveryRow } from '../delivery-store.ts'
import type { WebhookRow } from '../store.ts'

export function presentWebhook(row: WebhookRow, now: number): Webhook {
  const { oldSecretUntil } = row
  return {
    object: 'webhook',
    id: row.id,
    workspaceId: row.workspaceId,
    url: row.url,
    events: row.events,
    form: row.form,
    description: row.description,
    status: row.status,
    disabledReason: row.disabledReason,
    failingSince: toTimestamp(row.failingSince),
    oldSecretUntil: toTimestamp(oldSecretUntil !== null && now < oldSecretUntil ? oldSecretUntil : null),
    createdBy: { type: 'user', id: row.createdByRef },
    createdAt: toTimestamp(row.createdAt),
    updatedAt: toTimestamp(row.updatedAt),
  }
}

export function presentDelivery(row: WebhookDeliveryRow): WebhookDelivery {
  return {
    object: 'webhook_delivery',
    id: row.id,
    webhookId: row.webhookId,
    eventId: row.eventId,
    eventType: row.eventType,
    status: row.status,
    attempts: row.attempts,
    nextAttemptAt: toTimestamp(row.dueAt),
    lastAttemptAt: toTimestamp(row.lastAttemptAt),
    durationMs: row.durationMs,
    responseStatus: row.responseStatus,
    error: row.error,
    redeliveryOf: row.redeliveryOf,
    createdAt: toTimestamp(row.createdAt),
  }
}

export function presentDeliveryDetail(row: WebhookDeliveryRow): WebhookDeliveryDetail {
  return { ...presentDelivery(row), payload: JSON.parse(row.payload) as unknown, responseBody: row.responseBody }
}
