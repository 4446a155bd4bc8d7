import type { WebhookEventType } from '../../../shared/api/webhook-fields.ts'
import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import type { World } from '../../../shared/lib/world.ts'
import { nullableJson, text, time } from '../../db/columns.ts'
import { deleteInBatches } from '../../db/dialect.ts'
import { workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { commandAtEnd } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

// Events that webhooks, and people who want mail, wait for. Each is written in the transaction of the change that it tells of, and stays until deliveries are made
// of it. What it tells of is read then: the row says only which thing it is about, and what no reader finds out later.

const change = z.record(z.string(), z.unknown())

const events = table('webhook_events', {
  /** `evt_...` */
  id: text,
  workspaceId: workspaceUuid,
  /** A `WebhookEventType`, or one of a later release that runs beside this one. */
  type: text,
  subjectId: text,
  change: nullableJson(change),
  createdAt: time,
  /** When it is looked at next: it is claimed until then. */
  dueAt: time,
})
export type WebhookEventRow = RowOf<typeof events>

export interface HappenedEvent {
  type: WebhookEventType
  workspaceId: WorkspaceUuid
  /** The run, approval, question or task. */
  subjectId: string
  change?: Readonly<Record<string, unknown>>
  world: Pick<World, 'id' | 'now'>
}

/**
 * Writes nothing where no webhook waits for it, and nobody wants mail about it. An underscore in the name of a type stands for any character,
 * which finds too much at worst.
 */
const insertWanted = commandAtEnd(
  `insert into webhook_events (id, workspace_id, type, subject_id, change, created_at, due_at)
   select cast(? as text), cast(? as text), cast(? as text), cast(? as text), cast(? as text), cast(? as bigint), cast(? as bigint)
   where exists (select 1 from webhooks where workspace_id = ? and status = 'active'
                   and (events like ? or events like '%"*"%'))
      or exists (select 1 from mail_settings where workspace_id = ? and (events like ? or events like '%"*"%'))`,
)

/**
 * Records in the transaction of a change what happened, if a webhook of the workspace or somebody's mail waits for it. It is one statement whose answer nobody
 * waits for, and writes nothing where none does.
 */
export async function recordEvent(tx: Db, event: HappenedEvent): Promise<void> {
  const { type, workspaceId, subjectId, world } = event
  const at = world.now()
  const changed = event.change === undefined ? null : JSON.stringify(event.change)
  const wanting = [workspaceId, `%"${type}"%`]
  await insertWanted(tx, [world.id('evt_'), workspaceId, type, subjectId, changed, at, at, ...wanting, ...wanting])
}

const due = events.query(`where due_at <= ? and ${inKeptWorkspace('webhook_events')} order by due_at, id limit ?`)
/** Those of removed workspaces are left out. */
export const listDueEvents = (db: Db, { now, limit }: { now: number; limit: number }): Promise<WebhookEventRow[]> =>
  due.list(db, [now, limit])

/** Returns false when somebody else has it. */
export async function claimEvent(db: Db, { id, dueAt }: WebhookEventRow, until: number): Promise<boolean> {
  return (await events.update(db, { id, dueAt }, { dueAt: until })) === 1
}

/** Returns false when it is gone, or somebody else has claimed it since. */
export async function removeEvent(db: Db, event: { id: string; dueAt: number }): Promise<boolean> {
  return (await db('webhook_events').where({ id: event.id, due_at: event.dueAt }).delete()) === 1
}

/** Gives up events of which nobody could make deliveries. */
export async function removeOldEvents(db: Db, before: number): Promise<number> {
  return deleteInBatches(db, 'webhook_events', db('webhook_events').where('created_at', '<', before))
}
