import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import {
  insertMailSettings,
  type MailRow,
  type MailSettingsRow,
  type Recipient,
} from '../../control-plane/resources/mail/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at, seedPerson } from './seed.ts'

/** Settings of a new person who wants mail about all that is theirs. */
export async function seedMailSettings(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<MailSettingsRow> = {},
): Promise<MailSettingsRow> {
  const row: MailSettingsRow = {
    workspaceId,
    personUuid: await seedPerson(db, workspaceId),
    events: ['*'],
    about: 'mine',
    dueAt: null,
    attempts: 0,
    sentAt: null,
    error: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
  await insertMailSettings(db, row)
  return row
}

export const mailRow = ({ workspaceId, personUuid }: Recipient, changes: Partial<MailRow> = {}): MailRow => ({
  id: realWorld.id('evt_'),
  workspaceId,
  personUuid,
  subject: 'Run failed',
  body: 'Run failed',
  createdAt: at,
  ...changes,
})
