import type { Knex } from 'knex'
import { webhookLimits } from '../../shared/api/webhook-fields.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Bus } from '../db/bus.ts'
import { hostOf } from '../outbound/host-name.ts'
import type { Outbound } from '../outbound/outbound.ts'
import {
  claimWebhookDelivery,
  listDueOf,
  listWebhooksWithDue,
  noteAttempt,
  removeBeyond,
  type ClaimedDelivery,
  type WebhookDeliveryRow,
} from '../resources/webhooks/delivery-store.ts'
import { outcomeOf } from '../resources/webhooks/rules.ts'
import { signingSecrets } from '../resources/webhooks/secret.ts'
import { listActiveWebhooksByIds, noteFailing, type WebhookRow } from '../resources/webhooks/store.ts'
import { VaultError, type Vault } from '../vault/vault.ts'
import { disableFor } from './disable.ts'
import { fanOut, type FanOutOptions } from './fan-out.ts'
import { sendDelivery, type Attempted } from './send.ts'

export interface WebhookSenderOptions extends FanOutOptions {
  root: Knex
  world: World
  bus: Pick<Bus, 'on'>
  vault: Pick<Vault, 'open'>
  outbound: Pick<Outbound, 'send'>
}

/** Deliveries that are under way at once. A slow host takes few of these places, and so does a workspace with many hosts. */
const most = { inAll: 64, ofWorkspace: 12, ofHost: 4 } as const
/** Longer than an attempt. After that a delivery is due again, in case this process is gone. */
const claimMs = 60_000
/** The time that a stop gives to what is under way. */
const lastMs = 3_000

interface UnderWay {
  host: string
  workspaceId: string
}

/**
 * Sends what waits for webhooks. Every replica does, each delivery by the one that claims it:
 *
 *   waiting --claimed--> under way --taken (2xx)--> succeeded
 *      ^                    |  |  `--refused or lost, for the last time; the webhook is disabled--> failed
 *      |--later, refused ---'  |
 *      `--killed before it was noted; the claim is over
 *
 * So an event comes at least once, and twice where a process dies between the answer and its note.
 */
export class WebhookSender {
  private readonly options: WebhookSenderOptions
  private readonly underWay = new Map<WebhookDeliveryRow['id'], UnderWay>()
  private readonly attempts = new Set<Promise<void>>()
  private pass: Promise<void> | null = null
  private isAsked = false
  private isStopped = true
  private leaving = new AbortController()
  private unsubscribe: (() => void) | null = null
  /** Where the next pass begins, so that webhooks take turns where there are more of them than places. */
  private lastServed = ''

  constructor(options: WebhookSenderOptions) {
    this.options = options
  }

  start(): void {
    this.isStopped = false
    this.leaving = new AbortController()
    this.unsubscribe = this.options.bus.on('webhook.due', () => this.begin())
  }

  /** Waits a moment for what is under way. What is left then is sent again once its claim is over. */
  async stop(): Promise<void> {
    this.isStopped = true
    this.unsubscribe?.()
    this.unsubscribe = null
    const cancel = this.options.world.after(lastMs, () => this.leaving.abort())
    await this.idle()
    cancel()
  }

  /** Looks soon for what is due. */
  begin(): void {
    if (this.isStopped) return
    this.isAsked = true
    this.pass ??= this.passes().finally(() => {
      this.pass = null
      if (this.isAsked) this.begin()
    })
  }

  /** Resolves when nothing is due that this replica could send, and nothing is under way. */
  async idle(): Promise<void> {
    while (this.pass !== null || this.attempts.size > 0) await Promise.all([this.pass, ...this.attempts])
  }

  private async passes(): Promise<void> {
    const { log } = this.options
    while (this.isAsked && !this.isStopped) {
      this.isAsked = false
      try {
        await fanOut(this.options, () => this.isStopped)
        await this.sendDue()
      } catch (error) {
        log.error({ err: error }, 'deliveries of webhooks could not be looked for; the sweep tries again')
      }
    }
  }

  private async sendDue(): Promise<void> {
    const { root, world } = this.options
    const ids = await listWebhooksWithDue(root, world.now())
    const next = ids.findIndex((id) => id === this.lastServed) + 1
    const inTurn = [...ids.slice(next), ...ids.slice(0, next)]
    const webhooks = new Map((await listActiveWebhooksByIds(root, inTurn)).map((webhook) => [webhook.id, webhook]))
    for (const id of inTurn) {
      const webhook = webhooks.get(id)
      if (webhook === undefined) continue
      if (this.isStopped || this.underWay.size >= most.inAll) return
      await this.sendDueOf(webhook)
      this.lastServed = id
    }
  }

  private async sendDueOf(webhook: WebhookRow): Promise<void> {
    const { root, world } = this.options
    const host = hostOf(new URL(webhook.url))
    const place = { host, workspaceId: webhook.workspaceId }
    const room = this.roomFor(place)
    if (room === 0) return
    const now = world.now()
    // Those that are under way are due again only when their claims are over.
    for (const row of await listDueOf(root, { webhookId: webhook.id, now, limit: room })) {
      if (this.underWay.has(row.id)) continue
      const claimed = await claimWebhookDelivery(root, row, { now, until: now + claimMs })
      if (claimed !== null) this.attempt(claimed, { webhook, place })
    }
  }

  private roomFor({ host, workspaceId }: UnderWay): number {
    const all = [...this.underWay.values()]
    const ofHost = all.filter((each) => each.host === host).length
    const ofWorkspace = all.filter((each) => each.workspaceId === workspaceId).length
    return Math.max(0, Math.min(most.inAll - all.length, most.ofHost - ofHost, most.ofWorkspace - ofWorkspace))
  }

  private attempt(delivery: ClaimedDelivery, to: { webhook: WebhookRow; place: UnderWay }): void {
    this.underWay.set(delivery.id, to.place)
    const attempt = this.deliver(delivery, to.webhook)
      .catch((error: unknown) => {
        this.options.log.error({ err: error, delivery: delivery.id }, 'a delivery was not noted; it is made again')
      })
      .finally(() => {
        this.underWay.delete(delivery.id)
        this.attempts.delete(attempt)
        this.begin()
      })
    this.attempts.add(attempt)
  }

  private async deliver(delivery: ClaimedDelivery, webhook: WebhookRow): Promise<void> {
    const { root, world, log } = this.options
    const sent = await this.send(delivery, webhook)
    if (sent === null) return
    const { attempts } = delivery
    const { failingSince } = webhook
    const now = world.now()
    const outcome = outcomeOf(sent.end, { attempts, failingSince, now, random: world.random() })
    const status = outcome.isSuccess ? 'succeeded' : outcome.nextMs === null ? 'failed' : 'waiting'
    const responseStatus = 'status' in sent.end ? sent.end.status : null
    const { durationMs, responseBody } = sent
    const dueAt = outcome.nextMs === null ? null : now + outcome.nextMs
    const noted = { status, dueAt, durationMs, responseStatus, responseBody, error: outcome.error } as const
    if (!(await noteAttempt(root, delivery, noted))) return
    const told = { delivery: delivery.id, webhook: webhook.id, event: delivery.eventType, attempts, responseStatus }
    if (outcome.isSuccess) log.info(told, 'a webhook took an event')
    else log.warn({ ...told, error: outcome.error, isLast: dueAt === null }, 'a webhook did not take an event')
    if (dueAt === null) await removeBeyond(root, webhook.id, webhookLimits.kept)
    if (outcome.isSuccess || failingSince === null) await noteFailing(root, webhook.id, outcome.isSuccess ? null : now)
    if (outcome.disables !== null) await disableFor(this.options, webhook, outcome.disables)
  }

  private async send(delivery: ClaimedDelivery, webhook: WebhookRow): Promise<Attempted | null> {
    const { vault, world } = this.options
    let secrets: readonly string[]
    try {
      secrets = signingSecrets(vault, webhook, world.now())
    } catch (error) {
      if (!(error instanceof VaultError)) throw error
      const trouble = 'The secret cannot be read: the server has another key than then. Rotate the secret.'
      return { end: { trouble }, durationMs: 0, responseBody: null }
    }
    const leaving = this.leaving.signal
    return sendDelivery(delivery, { url: webhook.url, secrets }, { ...this.options, leaving })
  }
}
