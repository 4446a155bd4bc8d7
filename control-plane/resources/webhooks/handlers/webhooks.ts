import type { WebhookDeliveryId, WebhookId } from '../../../../shared/lib/ids.ts'
import { fail, failField } from '../../../../shared/api/errors.ts'
import { toTimestamp, webhookDeliveryId, webhookId } from '../../../../shared/api/ids.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { pingType, webhookLimits } from '../../../../shared/api/webhook-fields.ts'
import { webhookRoutes } from '../../../../shared/api/webhooks.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { publish } from '../../../db/transaction.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import { answer, implement, prepared, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { OutboundError } from '../../../outbound/outbound-error.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import {
  countWaiting,
  findDelivery,
  giveUpDeliveries,
  insertDeliveries,
  listDeliveries,
  untried,
  type WebhookDeliveryRow,
} from '../delivery-store.ts'
import { presentDelivery, presentDeliveryDetail, presentWebhook } from '../own/present.ts'
import { oldSecretMs } from '../rules.ts'
import { makeSecret } from '../secret.ts'
import {
  countWebhooks,
  findWebhook,
  insertWebhook,
  listWebhooks,
  removeWebhook,
  replaceWebhook,
  type WebhookRow,
} from '../store.ts'

type Routes = typeof webhookRoutes
type Dependencies = Pick<ResourceDependencies, 'vault' | 'outbound'>

export function webhookHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(webhookRoutes, {
    list,

    create: prepared<Routes['create'], void>({
      before: ({ body }) => checkAddress(deps, body.url),
      handle: (input) => create(input, deps),
    }),

    async get({ db, caller, params, world }) {
      return presentWebhook(await known(db, caller, params.webhookId), world.now())
    },

    update: prepared<Routes['update'], void>({
      before: async ({ body }) => (body.url === undefined ? undefined : checkAddress(deps, body.url)),
      handle: update,
    }),

    async rotateSecret({ db, caller, params, world, log }) {
      const before = await known(db, caller, params.webhookId)
      const { secret, sealed } = makeSecret(deps.vault, before.id, world)
      const now = world.now()
      const after = {
        ...before,
        secret: sealed,
        oldSecret: before.secret,
        oldSecretUntil: now + oldSecretMs,
        updatedAt: now,
      }
      await replaceWebhook(db, before, after)
      log.info({ webhook: before.id, user: caller.personRef }, 'the secret of a webhook was rotated')
      return { ...presentWebhook(after, now), secret }
    },

    async delete({ db, caller, params, log }) {
      const { id } = await known(db, caller, params.webhookId)
      await removeWebhook(db, id)
      log.info({ webhook: id, user: caller.personRef }, 'a webhook was deleted')
    },

    async ping({ db, caller, params, world }) {
      const { id, form } = await sending(db, caller, params.webhookId)
      const eventId = world.id('evt_')
      const { workspaceId } = caller
      const event = { object: 'event', id: eventId, type: pingType, createdAt: toTimestamp(world.now()), workspaceId }
      const body = form === 'slack' ? { text: 'svc reaches this channel.' } : { ...event, data: { webhookId: id } }
      const payload = JSON.stringify(body)
      return send(db, { webhookId: id, workspaceId, eventId, eventType: pingType, payload }, world)
    },

    deliveries,

    async delivery({ db, caller, params }) {
      return presentDeliveryDetail(await knownDelivery(db, caller, params))
    },

    async redeliver({ db, caller, params, world }) {
      const { id: redeliveryOf, ...row } = await knownDelivery(db, caller, params)
      await sending(db, caller, params.webhookId)
      return send(db, { ...row, redeliveryOf }, world)
    },
  })
}

const listCursor = timeAndId(webhookId)

async function list({ db, caller, query, world }: HandlerInput<Routes['list']>) {
  const { limit } = query
  const rows = await listWebhooks(db, { workspaceId: caller.workspaceId, limit, ...beforeOf(query, listCursor) })
  return pageByTime(rows, limit, (row) => presentWebhook(row, world.now()))
}

const deliveriesCursor = timeAndId(webhookDeliveryId)

async function deliveries({ db, caller, params, query }: HandlerInput<Routes['deliveries']>) {
  const { id } = await known(db, caller, params.webhookId)
  const { limit, status } = query
  const filter = { webhookId: id, ...(status !== undefined && { status }) }
  const rows = await listDeliveries(db, { ...filter, limit, ...beforeOf(query, deliveriesCursor) })
  return pageByTime(rows, limit, presentDelivery)
}

async function create({ db, caller, body, world, log }: HandlerInput<Routes['create']>, { vault }: Dependencies) {
  const { workspaceId, personRef } = caller
  if ((await countWebhooks(db, workspaceId)) >= webhookLimits.perWorkspace)
    failField('url', `There are at most ${webhookLimits.perWorkspace}.`)
  const id = world.id('whk_')
  const { secret, sealed } = makeSecret(vault, id, world)
  const now = world.now()
  const row: WebhookRow = {
    id,
    workspaceId,
    ...body,
    status: 'active',
    disabledReason: null,
    secret: sealed,
    oldSecret: null,
    oldSecretUntil: null,
    failingSince: null,
    createdByRef: personRef,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  await insertWebhook(db, row)
  log.info({ webhook: id, host: new URL(row.url).host, user: personRef }, 'a webhook was made')
  return answer(201, { ...presentWebhook(row, now), secret })
}

async function update({ db, caller, params, body, world, log }: HandlerInput<Routes['update']>) {
  const before = await known(db, caller, params.webhookId)
  const { status, ...fields } = withoutUndefined(body)
  const now = world.now()
  const isElsewhere = fields.url !== undefined && fields.url !== before.url
  const after: WebhookRow = {
    ...before,
    ...fields,
    // Nobody has refused what is sent there, and whoever named the address answers for it.
    ...(isElsewhere && { failingSince: null, createdByRef: caller.personRef }),
    ...(status !== undefined && status !== before.status && withStatus(status, caller)),
    updatedAt: now,
  }
  await replaceWebhook(db, before, after)
  if (after.status === 'disabled') await giveUpDeliveries(db, before.id, 'The webhook was disabled.')
  log.info({ webhook: before.id, user: caller.personRef, status: after.status }, 'a webhook was changed')
  return presentWebhook(after, now)
}

const withStatus = (status: WebhookRow['status'], { personRef }: PersonCaller): Partial<WebhookRow> =>
  status === 'disabled'
    ? { status, disabledReason: 'by_person' }
    : { status, disabledReason: null, failingSince: null, createdByRef: personRef }

async function known(db: Db, caller: PersonCaller, id: WebhookId): Promise<WebhookRow> {
  return (await findWebhook(db, caller.workspaceId, id)) ?? fail('webhook_not_found', { param: 'webhookId' })
}

async function knownDelivery(
  db: Db,
  caller: PersonCaller,
  params: { webhookId: WebhookId; deliveryId: WebhookDeliveryId },
): Promise<WebhookDeliveryRow> {
  const { id } = await known(db, caller, params.webhookId)
  return (await findDelivery(db, id, params.deliveryId)) ?? fail('webhook_delivery_not_found', { param: 'deliveryId' })
}

/** A webhook that takes one more delivery. */
async function sending(db: Db, caller: PersonCaller, id: WebhookId): Promise<WebhookRow> {
  const webhook = await known(db, caller, id)
  if (webhook.status !== 'active') fail('webhook_disabled', { param: 'webhookId' })
  if ((await countWaiting(db, id, webhookLimits.waiting)) >= webhookLimits.waiting)
    fail('http_exception', {
      status: 409,
      message: `${webhookLimits.waiting} deliveries of this webhook wait already.`,
    })
  return webhook
}

/** Has a delivery made at once, by whichever replica hears of it first. */
async function send(
  db: Tx,
  delivery: Pick<WebhookDeliveryRow, 'webhookId' | 'workspaceId' | 'eventId' | 'eventType' | 'payload'> &
    Partial<Pick<WebhookDeliveryRow, 'redeliveryOf'>>,
  world: HandlerInput<Routes['ping']>['world'],
) {
  const now = world.now()
  const { webhookId: key, workspaceId } = delivery
  const row: WebhookDeliveryRow = { ...delivery, ...untried, id: world.id('whd_'), dueAt: now, createdAt: now }
  const made = { ...row, redeliveryOf: delivery.redeliveryOf ?? null }
  await insertDeliveries(db, [made])
  await publish(db, { topic: 'webhook.due', key, payload: { workspaceId }, at: now })
  return answer(201, presentDelivery(made))
}

/** Refuses what would never be sent; a name that cannot be resolved now is tried with each delivery. */
async function checkAddress({ outbound }: Dependencies, url: string): Promise<void> {
  try {
    await outbound.resolve(new URL(url), { timeoutMs: resolveMs })
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    if (error.reason === 'refused_address' || error.reason === 'not_https')
      fail('webhook_url_refused', { param: 'url', message: sentence(error.message) })
  }
}
const resolveMs = 3_000

const sentence = (message: string): string => `${message[0]!.toUpperCase()}${message.slice(1)}.`
