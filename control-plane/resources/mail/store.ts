import { z } from 'zod'
import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { int, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { deleteInBatches } from '../../db/dialect.ts'
import { personUuid, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { command } from '../../db/statement.ts'
import { expectOnlyWriter, table, type RowOf } from '../../db/table.ts'

// What people want mail about, and what waits to be told them.

const settings = table(
  'mail_settings',
  {
    workspaceId: workspaceUuid,
    personUuid,
    /** Types, and `*`. */
    events: json(z.array(z.string())),
    about: z.enum(['mine', 'all']),
    /** When the next mail goes to them, or is taken for lost by whoever claimed it; null: nothing waits. */
    dueAt: nullableTime,
    /** How often the next mail was tried in vain. */
    attempts: int,
    sentAt: nullableTime,
    error: nullableText,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { personUuid: 'user_id' } },
)
export type MailSettingsRow = RowOf<typeof settings>

export async function insertMailSettings(db: Db, row: MailSettingsRow): Promise<void> {
  await settings.insert(db, row)
}

/** Changes what a person chose. Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceMailSettings(
  db: Db,
  { workspaceId, personUuid, version }: MailSettingsRow,
  { events, about, updatedAt }: MailSettingsRow,
): Promise<void> {
  const chosen = { events, about, updatedAt, version: version + 1 }
  expectOnlyWriter(await settings.update(db, { workspaceId, personUuid, version }, chosen))
}

/** Of one person in one workspace. */
export type Recipient = Pick<MailSettingsRow, 'workspaceId' | 'personUuid'>

export async function findMailSettings(
  db: Db,
  { workspaceId, personUuid }: Recipient,
): Promise<MailSettingsRow | null> {
  return settings.find(db, { workspaceId, personUuid })
}

const ofWorkspace = settings.query(`where workspace_id = ? and events <> '[]' order by user_id limit 1000`)
/** Settings of those who want any mail. */
export const listMailSettings = (db: Db, workspaceId: WorkspaceUuid): Promise<MailSettingsRow[]> =>
  ofWorkspace.list(db, [workspaceId])

const due = settings.query(
  `where due_at is not null and due_at <= ? and ${inKeptWorkspace('mail_settings')} order by due_at limit ?`,
)
/** Settings of those to whom a mail is due, the longest due first. */
export const listDueMail = (db: Db, { now, limit }: { now: number; limit: number }): Promise<MailSettingsRow[]> =>
  due.list(db, [now, limit])

/** Settings as whoever claimed the next mail knows them: nobody else has claimed it since while it is still due then. */
export interface ClaimedMail extends MailSettingsRow {
  dueAt: number
}

/** Claims the next mail until `until`; null: somebody else has it. */
export async function claimMail(db: Db, row: MailSettingsRow, until: number): Promise<ClaimedMail | null> {
  const { workspaceId, personUuid, dueAt } = row
  const claimed = await settings.update(db, { workspaceId, personUuid, dueAt }, { dueAt: until })
  return claimed === 1 ? { ...row, dueAt: until } : null
}

/** Notes what came of it; false: somebody else claimed it since. */
export async function noteMail(
  db: Db,
  { workspaceId, personUuid, dueAt }: ClaimedMail,
  outcome: Partial<Pick<MailSettingsRow, 'dueAt' | 'attempts' | 'sentAt' | 'error'>>,
): Promise<boolean> {
  return (await settings.update(db, { workspaceId, personUuid, dueAt }, outcome)) === 1
}

const hurry = command('update mail_settings set due_at = ? where workspace_id = ? and user_id = ? and due_at is null')
/** Has the next mail sent at `at`, where none waits already. */
export async function scheduleMail(db: Db, { workspaceId, personUuid }: Recipient, at: number): Promise<void> {
  await hurry(db, [at, workspaceId, personUuid])
}

const mails = table(
  'mails',
  { id: text, workspaceId: workspaceUuid, personUuid, subject: text, body: text, createdAt: time },
  { columns: { personUuid: 'user_id' } },
)
/** What a person is to be told of one event. */
export type MailRow = RowOf<typeof mails>

export async function insertMail(db: Db, row: MailRow): Promise<void> {
  await mails.insert(db, row)
}

const waiting = mails.query('where workspace_id = ? and user_id = ? order by created_at, id limit ?')
/** What waits for a person, oldest first. */
export const listMails = (db: Db, { workspaceId, personUuid }: Recipient, limit: number): Promise<MailRow[]> =>
  waiting.list(db, [workspaceId, personUuid, limit])

export async function countMails(db: Db, { workspaceId, personUuid }: Recipient): Promise<number> {
  return countOf(db('mails').where({ workspace_id: workspaceId, user_id: personUuid }))
}

export async function removeMails(db: Db, ids: readonly MailRow['id'][]): Promise<void> {
  await db('mails').whereIn('id', ids).delete()
}

/** Drops what waits for a person. */
export async function removeMailsOf(db: Db, { workspaceId, personUuid }: Recipient): Promise<void> {
  await db('mails').where({ workspace_id: workspaceId, user_id: personUuid }).delete()
}

/** Drops what could not be sent for so long that nobody wants it now. */
export async function removeOldMails(db: Db, before: number): Promise<number> {
  return deleteInBatches(db, 'mails', db('mails').where('created_at', '<', before))
}
