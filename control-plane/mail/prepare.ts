import type { PersonUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { mailPaces, nextMailAt, wantsMailAbout } from '../resources/mail/rules.ts'
import {
  countMails,
  findMailSettings,
  insertMail,
  listMailSettings,
  scheduleMail,
  type MailSettingsRow,
} from '../resources/mail/store.ts'
import type { WebhookEventRow } from '../resources/webhooks/event-store.ts'
import { composeOf, type Composed } from './compose.ts'
import { concernedIn } from './concerned.ts'

/** What a person would be shown of an event; null: nothing. */
export type ReadAs = (personUuid: PersonUuid) => Promise<Readonly<Record<string, unknown>> | null>

interface Addressed {
  to: MailSettingsRow
  composed: Composed
}

/** Makes mail of an event for those who want it, as each sees it. What it returns is for `recordMails`, in the transaction that removes the event. */
export async function prepareMails(root: Knex, event: WebhookEventRow, readAs: ReadAs): Promise<Addressed[]> {
  const wanting = (await listMailSettings(root, event.workspaceId)).filter((row) => wantsMailAbout(row, event.type))
  if (wanting.length === 0) return []
  const concerned = await concernedIn(root, event)
  const addressed: Addressed[] = []
  for (const to of wanting) {
    if (to.about === 'mine' && !concerned.has(to.personUuid)) continue
    const data = await readAs(to.personUuid)
    if (data !== null) addressed.push({ to, composed: composeOf(event, data) })
  }
  return addressed
}

/** Has them sent soon. Whoever turned mail off meanwhile gets none. */
export async function recordMails(tx: Tx, mails: readonly Addressed[], world: World): Promise<void> {
  const now = world.now()
  for (const { to, composed } of mails) {
    const settings = await findMailSettings(tx, to)
    if (settings === null || settings.events.length === 0) continue
    // The mail says that there is more.
    if ((await countMails(tx, to)) >= mailPaces.mostWaiting) continue
    const { workspaceId, personUuid } = to
    await insertMail(tx, { id: world.id('evt_'), workspaceId, personUuid, ...composed, createdAt: now })
    await scheduleMail(tx, to, nextMailAt(settings, now))
  }
}
