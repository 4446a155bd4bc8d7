import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import type { World } from '../../shared/lib/world.ts'

/** Sends mail by the operator's SMTP server. */
export interface Mailer {
  /** Fails with a `MailError`. Ends within `mailMs`, or once `leaving` is aborted: then nobody knows whether it was taken. */
  send(mail: Mail, leaving?: AbortSignal): Promise<void>
}

export interface Mail {
  to: string
  subject: string
  /** Plain text. */
  text: string
  /** Makes the id of the message, so that one that is sent twice is one to the recipient. */
  key: string
}

export interface SmtpSettings {
  /** `smtp://` or `smtps://`, with name and password where the server asks for them. */
  url: string
  /** `svc <svc@example.com>` */
  from: string
}

/** Why a mail was not sent, in words of ours and of the SMTP server, for the log. */
export class MailError extends Error {
  /** The server refuses this recipient or message for good. */
  readonly isFinal: boolean
  /** The same for the recipient: what the server says of anything else than their mail is the operator's affair. */
  get told(): string {
    return this.isFinal ? this.message : 'The SMTP server cannot be used now; the log of this server says why.'
  }

  constructor(message: string, isFinal: boolean) {
    super(message)
    this.isFinal = isFinal
  }
}

/** The most time that one mail takes, connection and TLS included. */
export const mailMs = 30_000

/**
 * Creates a mailer that connects for each mail: few are sent, and a connection that is kept is one that may be gone. What it sends is
 * encrypted: by `smtps`, or by STARTTLS, without which it sends nothing, unless the server is on this machine.
 */
export function createMailer({ url, from }: SmtpSettings, world: World): Mailer {
  return {
    async send({ to, subject, text, key }, leaving) {
      // Loaded with the first mail: most servers send none.
      const { createTransport } = await import('nodemailer')
      const { protocol, hostname, port, username, password } = new URL(url)
      const host = hostname.replace(/^\[|\]$/g, '')
      const isOnThisMachine = host === 'localhost' || host === '::1' || host.startsWith('127.')
      const isEncrypted = protocol === 'smtps:'
      const transport = createTransport({
        host,
        port: port === '' ? (isEncrypted ? 465 : 587) : Number(port),
        secure: isEncrypted,
        requireTLS: !isEncrypted && !isOnThisMachine,
        ...(username !== '' && { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
        connectionTimeout: 10_000,
        greetingTimeout: 10_000,
        socketTimeout: 15_000,
        dnsTimeout: 10_000,
        // A text is a text: it names no file and no address that would be read.
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      const overdue = Promise.withResolvers<never>()
      const leave = () => overdue.reject(new MailError('The server stops.', false))
      leaving?.addEventListener('abort', leave, { once: true })
      const stopTimer = world.after(mailMs, () =>
        overdue.reject(new MailError(`The SMTP server took longer than ${mailMs / 1_000} s.`, false)),
      )
      try {
        const messageId = `<${key}@svc>`
        await Promise.race([
          transport.sendMail({ from, to: { name: '', address: to }, subject, text, messageId, headers }),
          overdue.promise,
        ])
      } catch (error) {
        throw error instanceof MailError ? error : mailErrorOf(error)
      } finally {
        stopTimer()
        leaving?.removeEventListener('abort', leave)
        transport.close()
      }
    },
  }
}

/** Nobody's absence notice comes back. */
const headers = { 'auto-submitted': 'auto-generated', 'x-auto-response-suppress': 'All' }

interface SmtpFailure {
  code?: unknown
  command?: unknown
  responseCode?: unknown
  response?: unknown
  message?: unknown
}

function mailErrorOf(error: unknown): MailError {
  const { code, command, responseCode, response, message } = error as SmtpFailure
  const reply = typeof response === 'string' ? response : typeof message === 'string' ? message : ''
  const said = reply.replaceAll(/\p{Cc}+/gu, ' ').slice(0, 300)
  // A refusal of this recipient or of what is sent; one of the sign-in or the sender is for the operator to mend.
  const isOfMail = command === 'RCPT TO' || command === 'DATA' || code === 'EMESSAGE'
  const isFinal = isOfMail && typeof responseCode === 'number' && responseCode >= 500
  if (typeof responseCode === 'number') return new MailError(`The SMTP server answered: ${said}`, isFinal)
  return new MailError(`The SMTP server cannot be used: ${certificateTrouble(error) ?? said}`, false)
}
