import type { Knex } from 'knex'
import type { PersonUuid } from '../../shared/lib/ids.ts'
import { webhookLimits } from '../../shared/api/webhook-fields.ts'
import type { World } from '../../shared/lib/world.ts'
import { inTransaction } from '../db/transaction.ts'
import type { BodyRoom } from '../http/body-room.ts'
import type { ImplementedRoute } from '../http/implement.ts'
import { prepareMails, recordMails } from '../mail/prepare.ts'
import type { Log } from '../process/log.ts'
import {
  countWaiting,
  insertDeliveries,
  untried,
  type WebhookDeliveryRow,
} from '../resources/webhooks/delivery-store.ts'
import { claimEvent, listDueEvents, removeEvent, type WebhookEventRow } from '../resources/webhooks/event-store.ts'
import { wantsEvent } from '../resources/webhooks/rules.ts'
import { listActiveWebhooks, type WebhookRow } from '../resources/webhooks/store.ts'
import { disableFor } from './disable.ts'
import { payloadOf } from './payload.ts'
import { makerOf, memberOf, shownTo, type Reading } from './render.ts'

export interface FanOutOptions {
  root: Knex
  world: World
  log: Log
  /** Every route with its handler. */
  routes: () => readonly ImplementedRoute[]
  answers: BodyRoom
  publicUrl: () => string
  /** People get mail, too. */
  sendsMail: boolean
}

const perPage = 50
/** Longer than the reads that an event needs. After that it is due again, in case this process is gone. */
const claimMs = 60_000

/**
 * Makes deliveries of the events that are due: one for each webhook that waits for such, with what its maker sees, and mail likewise. The event is removed in
 * the transaction that writes them, so it comes to each webhook once, whichever replica dies when.
 *
 *   recorded --claimed by one replica--> read --deliveries written--> gone
 *      ^                                  |
 *      `------ the claim is over; killed -'
 */
export async function fanOut(options: FanOutOptions, isStopped: () => boolean): Promise<void> {
  const { root, world, log } = options
  for (;;) {
    const page = await listDueEvents(root, { now: world.now(), limit: perPage })
    for (const event of page) {
      if (isStopped()) return
      const until = world.now() + claimMs
      if (!(await claimEvent(root, event, until))) continue
      try {
        await makeDeliveries({ ...event, dueAt: until }, options)
      } catch (error) {
        // It is due again later, and given up after a day; other events do not wait for it.
        log.error({ err: error, event: event.id, type: event.type }, 'no deliveries could be made of an event')
      }
    }
    if (page.length < perPage) return
  }
}

async function makeDeliveries(event: WebhookEventRow, options: FanOutOptions): Promise<void> {
  const { root, world, publicUrl } = options
  const wanting = (await listActiveWebhooks(root, event.workspaceId)).filter((webhook) =>
    wantsEvent(webhook, event.type),
  )
  const reading: Reading = { ...options, db: root, routes: options.routes() }
  const payloads = new Map<WebhookRow['id'], string>()
  for (const webhook of wanting) {
    const maker = await makerOf(root, webhook)
    if (maker === null) await disableFor(options, webhook, 'owner_left')
    const data = maker === null ? null : await shownTo(maker, event, reading)
    if (data !== null) payloads.set(webhook.id, payloadOf(event, data, { form: webhook.form, publicUrl: publicUrl() }))
  }
  const readAs = async (personUuid: PersonUuid) => {
    const person = await memberOf(root, event.workspaceId, personUuid)
    return person === null ? null : shownTo(person, event, reading)
  }
  const mails = options.sendsMail ? await prepareMails(root, event, readAs) : []
  await inTransaction(root, async (tx) => {
    if (!(await removeEvent(tx, event))) return
    await recordMails(tx, mails, world)
    // One that was deleted or disabled meanwhile gets nothing.
    const active = payloads.size === 0 ? [] : await listActiveWebhooks(tx, event.workspaceId)
    for (const { id } of active) {
      const payload = payloads.get(id)
      if (payload === undefined) continue
      const isFull = (await countWaiting(tx, id, webhookLimits.waiting)) >= webhookLimits.waiting
      await insertDeliveries(tx, [{ ...deliveryOf(event, { webhookId: id, payload, world }), ...(isFull && given) }])
    }
  })
}

/** A delivery that is shown and can be asked for again, and is not tried. */
const given = {
  status: 'failed',
  dueAt: null,
  error: `${webhookLimits.waiting} deliveries waited already.`,
} as const satisfies Partial<WebhookDeliveryRow>

const deliveryOf = (
  event: WebhookEventRow,
  { webhookId, payload, world }: { webhookId: WebhookDeliveryRow['webhookId']; payload: string; world: World },
): WebhookDeliveryRow => ({
  ...untried,
  id: world.id('whd_'),
  webhookId,
  workspaceId: event.workspaceId,
  eventId: event.id,
  eventType: event.type,
  payload,
  dueAt: world.now(),
  createdAt: world.now(),
})
