import { createMailer, type Mailer, type SmtpSettings } from '../mailer/mailer.ts'
import { mailPaces } from '../resources/mail/rules.ts'
import { removeOldMails } from '../resources/mail/store.ts'
import type { Sweep } from '../sweeps/sweeper.ts'
import { MailSender, type MailSenderOptions } from './sender.ts'

export interface MailService {
  /** null: the operator named no SMTP server. */
  mailer: Mailer | null
  sender: MailSender | null
  sweeps: readonly Sweep[]
}

/** Creates what sends people mail. Without an SMTP server, only what waited for one is dropped in time. */
export function createMailService(
  settings: SmtpSettings | null,
  { everyMs, ...options }: Omit<MailSenderOptions, 'mailer'> & { everyMs: number },
): MailService {
  const old: Sweep = {
    name: 'old_mail',
    everyMs: 3_600_000,
    run: async ({ root, now }) => void (await removeOldMails(root, now - mailPaces.keptMs)),
  }
  if (settings === null) return { mailer: null, sender: null, sweeps: [old] }
  const mailer = createMailer(settings, options.world)
  const sender = new MailSender({ ...options, mailer })
  const sending: Sweep = {
    name: 'mail',
    everyMs,
    // The sweep does not wait for it: a slow SMTP server must not hold up other sweeps.
    run: async () => sender.begin(),
    idle: () => sender.idle(),
  }
  return { mailer, sender, sweeps: [sending, old] }
}
