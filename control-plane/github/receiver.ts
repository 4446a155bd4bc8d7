import type Koa from 'koa'
import type { Knex } from 'knex'
import { fail } from '../../shared/api/errors.ts'
import { mebibyte } from '../../shared/api/route.ts'
import type { World } from '../../shared/lib/world.ts'
import type { CostlyPool } from '../costly/pool.ts'
import { readBody } from '../http/body.ts'
import { BodyRoom } from '../http/body-room.ts'
import type { RequestState } from '../http/kernel.ts'
import { limitHeaders, type Limiter } from '../http/limits.ts'
import { insertDelivery } from './delivery-store.ts'
import type { Happening } from './events.ts'
import { readDelivery, type DeliveryRead, type ReceivedDelivery } from './read-delivery.ts'
import { signatureCheck } from './signature.ts'

export interface ReceiverOptions {
  root: Knex
  world: World
  limiter: Limiter
  costly: Pick<CostlyPool, 'run'>
  /** null: nothing is taken. */
  secret: string | null
  /** A delivery was stored. */
  onStored: () => void
}

export const receiverPath = '/integrations/github/webhook'
/** GitHub sends no more. */
const bodyLimit = 25 * mebibyte
/** Nearly all deliveries are smaller; they have room of their own, so that large ones never hold them up. */
const smallDelivery = mebibyte
/** GitHub waits no longer for its answer. */
const deliveryMs = 10_000
/** A larger one is read by a worker: the event loop has others to serve. */
const quickBytes = 128 * 1024

/**
 * Takes what GitHub sends: the signature over the raw bytes is worked out while they come and checked before anything is
 * made of them, a delivery is stored once by its id, and answered before it is worked off, as GitHub waits ten seconds
 * only. Anybody can send here, so what is read at the same time is bounded in bytes, and how long it may take.
 */
export function githubReceiver(options: ReceiverOptions): Koa.Middleware {
  const { world } = options
  const rooms = {
    small: new BodyRoom(world, { bytes: 8 * mebibyte, waitingPerOwner: 100, waitMs: 10_000 }),
    large: new BodyRoom(world, { bytes: bodyLimit, waitingPerOwner: 20, waitMs: 10_000 }),
  }
  return async (ctx, next) => {
    if (ctx.path !== receiverPath || options.secret === null) return next()
    ;(ctx.state as RequestState).routeId = 'github.webhook'
    ctx.set('Cache-Control', 'no-store')
    if (ctx.method !== 'POST') {
      ctx.set('Allow', 'POST')
      ctx.status = 405
      ctx.body = { error: 'Only POST is answered here.' }
      return
    }
    const limit = await options.limiter.take('general', `address:${ctx.ip}`)
    if (limit !== null) ctx.set(limitHeaders(limit))
    const signature = ctx.get('x-hub-signature-256')
    if (signature === '')
      fail('auth_missing', { message: 'The delivery is not signed: set the secret of the webhook.' })
    const check = signatureCheck(options.secret, signature)
    if (check === null) return refuseSignature()
    const length = Number(ctx.get('content-length'))
    const { bytes, release } = await readBody(ctx.req, {
      limit: bodyLimit,
      // GitHub says the length, but proxies before this server may pass a body on in chunks without it (cloudflared, and
      // those that get it by HTTP/2), so such a delivery is no fault. All that are of use here are small; what says no
      // length gets no more than a small one, or anybody could take the room for large ones by saying nothing.
      limitWithoutLength: smallDelivery,
      mostMs: deliveryMs,
      room: length <= smallDelivery ? rooms.small : rooms.large,
      owner: { group: ctx.ip, member: ctx.ip },
      world,
      // What is packed could be unpacked without end, and GitHub packs nothing.
      mayBePacked: false,
      onChunk: (chunk) => check.update(chunk),
    })
    try {
      if (!check.isRight()) return refuseSignature()
      ctx.status = 202
      ctx.body = { status: await take(ctx, bytes, options) }
    } finally {
      release()
    }
  }
}

const refuseSignature = () =>
  fail('auth_invalid', { message: 'The signature is not made with the secret of this server.' })

async function take(
  ctx: Koa.Context,
  bytes: Buffer,
  { root, world, costly, onStored }: ReceiverOptions,
): Promise<'pong' | 'ignored' | 'repeated' | 'accepted'> {
  const [event, id] = [ctx.get('x-github-event'), ctx.get('x-github-delivery')]
  if (event === 'ping') return 'pong'
  if (!/^[\w-]{1,100}$/.test(id)) fail('validation_error', { param: 'X-GitHub-Delivery' })
  const happening = happeningOf(await read({ event, contentType: ctx.get('content-type'), bytes }, costly))
  if (happening === null) return 'ignored'
  if (!(await insertDelivery(root, { id, happening, at: world.now() }))) return 'repeated'
  onStored()
  return 'accepted'
}

async function read(delivery: ReceivedDelivery, costly: ReceiverOptions['costly']): Promise<DeliveryRead> {
  const bytes = delivery.bytes.length
  if (bytes <= quickBytes) return readDelivery(delivery)
  const answer = await costly.run('github.delivery', delivery, { workspaceId: 'github', caller: 'github', bytes })
  return answer.kind === 'done' ? answer.value : { kind: 'not_understood', fields: [] }
}

function happeningOf(read: DeliveryRead): Happening | null {
  if (read.kind === 'read') return read.happening
  if (read.kind === 'not_json') return fail('validation_error', { param: 'body', message: 'The body is not JSON.' })
  return fail('validation_error', { param: 'body', details: { fields: read.fields } })
}
