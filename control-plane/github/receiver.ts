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
  /** null: all deliveries are ignored. */
  secret: string | null
  /** Called after a delivery was stored. */
  onStored: () => void
}

export const receiverPath = '/integrations/github/webhook'
/** GitHub sends nothing larger. */
const bodyLimit = 25 * mebibyte
/** Nearly all deliveries are smaller. They have room of their own, so that large ones never hold them up. */
const smallDelivery = mebibyte
/** GitHub waits no longer for its answer. */
const deliveryMs = 10_000
/** A worker reads larger deliveries, to keep the event loop free for others. */
const quickBytes = 128 * 1024

/**
 * Receives GitHub's deliveries. The signature over the raw bytes is computed while they arrive, and is checked before
 * anything else happens to them. A delivery is stored once by its id, and answered before it is processed, as GitHub
 * waits only ten seconds. Anybody can send requests here, so both the bytes being read and the time they may take are
 * bounded.
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
      // GitHub sends the length, but proxies before this server may pass a body on in chunks without it (cloudflared,
      // and proxies that get it by HTTP/2), so such a delivery is no error. All useful deliveries are small, so a body
      // without a length may only be small; otherwise anybody could take the room for large ones by leaving the length
      // out.
      limitWithoutLength: smallDelivery,
      mostMs: deliveryMs,
      room: length <= smallDelivery ? rooms.small : rooms.large,
      owner: { group: ctx.ip, member: ctx.ip },
      world,
      // A packed body could unpack to any size, and GitHub packs nothing.
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
