import type { MailSettings } from '../../../shared/api/mail.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import type { MailSettingsRow } from './store.ts'

/** The paces at which a person gets mail, in milliseconds. */
export const mailPaces = {
  /** What happens within this time after the first of it comes in one mail. */
  gatherMs: 15_000,
  /** The least time between two mails to one person. */
  betweenMs: 60_000,
  /** Nobody wants to be told of what is older. */
  keptMs: 24 * 3_600_000,
  /** What waits for one person at most; more is left out. */
  mostWaiting: 200,
  /** The time before a mail is tried again that was tried so often in vain. */
  againMs: (attempts: number, random: number) =>
    Math.round(Math.min(3_600_000, 30_000 * 2 ** Math.min(attempts - 1, 10)) * (0.75 + random / 2)),
} as const

export const wantsMailAbout = ({ events }: Pick<MailSettingsRow, 'events'>, type: string): boolean =>
  events.includes(type) || events.includes('*')

/** When somebody gets their next mail, if something happens now. */
export const nextMailAt = ({ sentAt }: Pick<MailSettingsRow, 'sentAt'>, now: number): number =>
  Math.max(now + mailPaces.gatherMs, (sentAt ?? 0) + mailPaces.betweenMs)

export const testMail = (workspace: string): { subject: string; text: string } => ({
  subject: `[${workspace}] svc reaches you by mail`,
  text: 'You asked for this mail by `svc mail test`. `svc mail set` chooses what you get mail about.\n',
})

export const presentMailSettings = (
  row: MailSettingsRow | null,
  { address, isOffered }: { address: string; isOffered: boolean },
): MailSettings => ({
  object: 'mail_settings',
  isOffered,
  address,
  events: row?.events ?? [],
  about: row?.about ?? 'mine',
  lastSentAt: row === null || row.sentAt === null ? null : toTimestamp(row.sentAt),
  error: row?.error ?? null,
  updatedAt: row === null ? null : toTimestamp(row.updatedAt),
})
