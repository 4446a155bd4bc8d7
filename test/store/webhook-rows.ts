import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { idFrom } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import {
  insertDeliveries,
  untried,
  type WebhookDeliveryRow,
} from '../../control-plane/resources/webhooks/delivery-store.ts'
import { insertWebhook, type WebhookRow } from '../../control-plane/resources/webhooks/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

/** An active webhook that waits for all events. */
export async function seedWebhook(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<WebhookRow> = {},
): Promise<WebhookRow> {
  const row: WebhookRow = {
    id: realWorld.id('whk_'),
    workspaceId,
    url: 'https://hooks.example.com/',
    events: ['*'],
    form: 'json',
    description: '',
    status: 'active',
    disabledReason: null,
    secret: Buffer.from('sealed'),
    oldSecret: null,
    oldSecretUntil: null,
    failingSince: null,
    createdByRef: idFrom(realWorld.id('usr_')),
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
  await insertWebhook(db, row)
  return row
}

/** A delivery that is due. */
export async function seedDelivery(
  db: Db,
  { id: webhookId, workspaceId }: WebhookRow,
  changes: Partial<WebhookDeliveryRow> = {},
): Promise<WebhookDeliveryRow> {
  const row: WebhookDeliveryRow = {
    ...untried,
    id: realWorld.id('whd_'),
    webhookId,
    workspaceId,
    eventId: realWorld.id('evt_'),
    eventType: 'run.failed',
    payload: '{}',
    dueAt: at,
    createdAt: at,
    ...changes,
  }
  await insertDeliveries(db, [row])
  return row
}
