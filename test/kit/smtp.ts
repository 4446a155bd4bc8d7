import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

/** A mail as an SMTP server took it. */
export interface TakenMail {
  from: string
  to: string[]
  /** Head and body, as they were sent, with the lines of the body joined that the encoding had broken. */
  source: string
}

export interface Smtp {
  url: string
  taken: TakenMail[]
  /** What it answers to a recipient from now on; null: it takes them. */
  refuse(refusal: { code: number; message: string } | null): void
  stop(): Promise<void>
}

interface SmtpOptions {
  /** The name and password that it asks for. */
  login?: { user: string; pass: string }
  /** Is called before a mail is taken. */
  before?: () => Promise<void>
  host?: string
}

/** A real SMTP server on loopback, without TLS unless it is asked for. */
export async function startSmtp({ login, before, host = '127.0.0.1' }: SmtpOptions = {}): Promise<Smtp> {
  const taken: TakenMail[] = []
  let refusal: { code: number; message: string } | null = null
  const server = new SMTPServer({
    authOptional: login === undefined,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onAuth: ({ username, password }, _, done) =>
      username === login?.user && password === login?.pass
        ? done(null, { user: username })
        : done(Object.assign(new Error('wrong password'), { responseCode: 535 })),
    onRcptTo: (_, __, done) =>
      refusal === null ? done() : done(Object.assign(new Error(refusal.message), { responseCode: refusal.code })),
    onData: (stream, session, done) => {
      const take = async () => {
        const source = await text(stream)
        await before?.()
        const { mailFrom, rcptTo } = session.envelope
        taken.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          source: source.replaceAll('=\r\n', ''),
        })
        done()
      }
      void take()
    },
  })
  // Clients that are killed or leave early are part of the tests.
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.server.address() as AddressInfo
  const name = login === undefined ? '' : `${encodeURIComponent(login.user)}:${encodeURIComponent(login.pass)}@`
  return {
    url: `smtp://${name}${host}:${port}`,
    taken,
    refuse(next) {
      refusal = next
    },
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
