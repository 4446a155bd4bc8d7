import type { WebhookId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { webhookDisabledReasons, webhookForms, webhookStatuses } from '../../../shared/api/webhook-fields.ts'
import { int, json, nullableTime, text, time } from '../../db/columns.ts'
import { personRef, webhookId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'

const sealed = z.instanceof(Uint8Array).transform((bytes): Buffer => Buffer.from(bytes))

const webhooks = table(
  'webhooks',
  {
    /** `whk_...` */
    id: webhookId,
    workspaceId: workspaceUuid,
    url: text,
    /** Types, and `*`. */
    events: json(z.array(z.string())),
    form: z.enum(webhookForms),
    description: text,
    status: z.enum(webhookStatuses),
    disabledReason: z.enum(webhookDisabledReasons).nullable(),
    /** Sealed (`secret.ts`). */
    secret: sealed,
    /** The one before, which signs as well until `oldSecretUntil`. */
    oldSecret: sealed.nullable(),
    oldSecretUntil: nullableTime,
    failingSince: nullableTime,
    /** `usr_...`; what they see is sent. */
    createdByRef: personRef,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { createdByRef: 'created_by' } },
)
export type WebhookRow = RowOf<typeof webhooks>

export async function insertWebhook(db: Db, row: WebhookRow): Promise<void> {
  await webhooks.insert(db, row)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceWebhook(db: Db, before: WebhookRow, after: WebhookRow): Promise<void> {
  await webhooks.replace(db, before, after)
}

export async function findWebhook(db: Db, workspaceId: WorkspaceUuid, id: WebhookId): Promise<WebhookRow | null> {
  return webhooks.find(db, { workspaceId, id })
}

export async function countWebhooks(db: Db, workspaceId: WorkspaceUuid): Promise<number> {
  return countOf(db('webhooks').where({ workspace_id: workspaceId }))
}

/** Lists webhooks newest first; returns one row more than `limit`. */
export async function listWebhooks(db: Db, filter: OlderPage & { workspaceId: WorkspaceUuid }): Promise<WebhookRow[]> {
  return webhooks.list(newestFirst(webhooks.from(db).where({ workspace_id: filter.workspaceId }), filter))
}

const active = webhooks.query(`where workspace_id = ? and status = 'active' order by created_at, id limit 100`)
export const listActiveWebhooks = (db: Db, workspaceId: WorkspaceUuid): Promise<WebhookRow[]> =>
  active.list(db, [workspaceId])

const byIds = webhooks.query(`where id in ? and status = 'active' and ${inKeptWorkspace('webhooks')}`)
/** Those of removed workspaces are left out. */
export const listActiveWebhooksByIds = async (db: Db, ids: readonly WebhookId[]): Promise<WebhookRow[]> =>
  ids.length === 0 ? [] : byIds.list(db, [[...ids]])

/** Notes whether deliveries fail, where that is new. It leaves the version as it is, since nobody decides by it who changes a webhook. */
export async function noteFailing(db: Db, id: WebhookId, since: number | null): Promise<void> {
  const row = db('webhooks').where({ id })
  await (since === null ? row.whereNotNull('failing_since') : row.whereNull('failing_since')).update({
    failing_since: since,
  })
}

/** Disables an active webhook; false: it is disabled or gone. */
export async function disableWebhook(
  db: Db,
  id: WebhookId,
  { reason, at }: { reason: Exclude<WebhookRow['disabledReason'], null>; at: number },
): Promise<boolean> {
  const changed = await webhooks.update(
    db,
    { id, status: 'active' },
    { status: 'disabled', disabledReason: reason, updatedAt: at },
  )
  return changed === 1
}

/** Its deliveries go before it. */
export async function removeWebhook(db: Db, id: WebhookId): Promise<void> {
  await db('webhook_deliveries').where({ webhook_id: id }).delete()
  await db('webhooks').where({ id }).delete()
}
