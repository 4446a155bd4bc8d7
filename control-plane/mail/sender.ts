import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { inTransaction } from '../db/transaction.ts'
import { MailError, mailMs, type Mailer } from '../mailer/mailer.ts'
import type { Log } from '../process/log.ts'
import { findRole, findUser } from '../resources/members/store.ts'
import { mailPaces } from '../resources/mail/rules.ts'
import {
  claimMail,
  listDueMail,
  listMails,
  noteMail,
  removeMails,
  removeMailsOf,
  type ClaimedMail,
  type MailRow,
} from '../resources/mail/store.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import { bundled } from './compose.ts'

export interface MailSenderOptions {
  root: Knex
  world: World
  log: Log
  mailer: Pick<Mailer, 'send'>
}

/** Longer than a mail takes. After that it is due again, in case this process is gone. */
const claimMs = 2 * mailMs
/** What one mail lists at most. */
const mostListed = 20
/** Mails that are under way at once. */
const mostAtOnce = 4
const perPage = 20
/** The time that a stop gives to what is under way. */
const lastMs = 3_000

/**
 * Sends people what waits for them, all of it in one mail. Every replica does, each mail by the one that claims it:
 *
 *   waiting --claimed--> under way --taken--> gone
 *      ^                    |  `--refused for good--> gone, and the settings say why
 *      |--later, refused ---'
 *      `--killed before it was noted; the claim is over
 *
 * So what happened is told at least once, and twice where a process dies between the answer and its note.
 */
export class MailSender {
  private readonly options: MailSenderOptions
  private pass: Promise<void> | null = null
  private isStopped = true
  private leaving = new AbortController()

  constructor(options: MailSenderOptions) {
    this.options = options
  }

  start(): void {
    this.isStopped = false
    this.leaving = new AbortController()
  }

  /** Waits a moment for what is under way. What is left then is sent again once its claim is over. */
  async stop(): Promise<void> {
    this.isStopped = true
    const cancel = this.options.world.after(lastMs, () => this.leaving.abort())
    await this.pass
    cancel()
  }

  /** Looks for what is due. */
  begin(): void {
    if (this.isStopped) return
    this.pass ??= this.sendDue()
      .catch((error: unknown) => {
        this.options.log.error({ err: error }, 'mail could not be looked for; the sweep tries again')
      })
      .finally(() => {
        this.pass = null
      })
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.pass !== null) await this.pass
  }

  private async sendDue(): Promise<void> {
    const { root, world } = this.options
    for (;;) {
      const page = await listDueMail(root, { now: world.now(), limit: perPage })
      const left = [...page]
      const work = async () => {
        for (let row = left.shift(); row !== undefined && !this.isStopped; row = left.shift()) {
          const claimed = await claimMail(root, row, world.now() + claimMs)
          if (claimed !== null) await this.sendTo(claimed)
        }
      }
      await Promise.all(Array.from({ length: mostAtOnce }, work))
      if (page.length < perPage || this.isStopped) return
    }
  }

  private async sendTo(claimed: ClaimedMail): Promise<void> {
    const { root, log } = this.options
    const { workspaceId, personUuid } = claimed
    try {
      const role = await findRole(root, workspaceId, personUuid)
      const user = role === null ? null : await findUser(root, personUuid)
      const workspace = await findWorkspace(root, workspaceId)
      const waiting = await listMails(root, claimed, mostListed + 1)
      if (user === null || workspace === null) return await this.note(claimed, { sent: waiting, isGone: true })
      const listed = waiting.slice(0, mostListed)
      if (listed.length === 0) return await this.note(claimed, { sent: [] })
      const isAll = waiting.length === listed.length
      const { subject, body } = bundled(listed, { workspace: workspace.name, isAll })
      const trouble = await this.send({ to: user.email, subject, text: body, key: listed[0]!.id })
      if (trouble !== null && this.leaving.signal.aborted) return
      if (trouble === null) log.info({ person: user.publicId, count: listed.length }, 'mail was sent')
      else log.warn({ person: user.publicId, error: trouble.message, isLast: trouble.isFinal }, 'mail was not sent')
      await this.note(claimed, { sent: trouble === null || trouble.isFinal ? listed : [], trouble })
    } catch (error) {
      // The claim ends, and then it is due again.
      log.error({ err: error, workspace: workspaceId }, 'a mail was not noted; it may be sent again')
    }
  }

  private async send(mail: Parameters<Mailer['send']>[0]): Promise<MailError | null> {
    try {
      await this.options.mailer.send(mail, this.leaving.signal)
      return null
    } catch (error) {
      if (error instanceof MailError) return error
      throw error
    }
  }

  /** `sent`: what goes, since it was taken or will never be. */
  private async note(
    claimed: ClaimedMail,
    {
      sent,
      trouble = null,
      isGone = false,
    }: { sent: readonly MailRow[]; trouble?: MailError | null; isGone?: boolean },
  ): Promise<void> {
    const { root, world } = this.options
    const now = world.now()
    await inTransaction(root, async (tx) => {
      if (isGone) await removeMailsOf(tx, claimed)
      else
        await removeMails(
          tx,
          sent.map(({ id }) => id),
        )
      const isLeft = (await listMails(tx, claimed, 1)).length > 0
      const attempts = trouble === null || trouble.isFinal ? 0 : claimed.attempts + 1
      const waitMs = attempts === 0 ? mailPaces.betweenMs : mailPaces.againMs(attempts, world.random())
      const isSent = trouble === null && sent.length > 0
      await noteMail(tx, claimed, {
        attempts,
        dueAt: isLeft ? now + waitMs : null,
        ...(isSent && { sentAt: now, error: null }),
        ...(trouble !== null && { error: trouble.told }),
      })
    })
  }
}
