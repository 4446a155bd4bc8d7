import type Koa from 'koa'
import type { Knex } from 'knex'
import { ZodError } from 'zod'
import { fail } from '../../shared/api/errors.ts'
import { mebibyte } from '../../shared/api/route.ts'
import type { World } from '../../shared/lib/world.ts'
import { readBytes } from '../http/body.ts'
import type { RequestState } from '../http/kernel.ts'
import { limitHeaders, type Limiter } from '../http/limits.ts'
import { insertDelivery } from './delivery-store.ts'
import { readHappening, type Happening } from './events.ts'
import { isSignedWith } from './signature.ts'

export interface ReceiverOptions {
  root: Knex
  world: World
  limiter: Limiter
  /** null: nothing is taken. */
  secret: string | null
  /** A delivery was stored. */
  onStored: () => void
}

export const receiverPath = '/integrations/github/webhook'
/** GitHub sends no more. */
const bodyLimit = 25 * mebibyte

/**
 * Takes what GitHub sends: the signature over the raw bytes is checked before anything is read, a delivery is stored once
 * by its id, and answered before it is worked off, as GitHub waits ten seconds only.
 */
export function githubReceiver(options: ReceiverOptions): Koa.Middleware {
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
    const bytes = await readBytes(ctx.req, bodyLimit)
    if (!isSignedWith(options.secret, bytes, signature))
      fail('auth_invalid', { message: 'The signature is not made with the secret of this server.' })
    ctx.status = 202
    ctx.body = { status: await take(ctx, bytes, options) }
  }
}

async function take(
  ctx: Koa.Context,
  bytes: Buffer,
  { root, world, onStored }: ReceiverOptions,
): Promise<'pong' | 'ignored' | 'repeated' | 'accepted'> {
  const [event, id] = [ctx.get('x-github-event'), ctx.get('x-github-delivery')]
  if (event === 'ping') return 'pong'
  if (!/^[\w-]{1,100}$/.test(id)) fail('validation_error', { param: 'X-GitHub-Delivery' })
  const happening = read(event, payloadOf(bytes, ctx.get('content-type')))
  if (happening === null) return 'ignored'
  if (!(await insertDelivery(root, { id, happening, at: world.now() }))) return 'repeated'
  onStored()
  return 'accepted'
}

function read(event: string, payload: unknown): Happening | null {
  try {
    return readHappening(event, payload)
  } catch (error) {
    if (!(error instanceof ZodError)) throw error
    const fields = error.issues.slice(0, 20).map(({ path, message }) => ({ path: path.join('.'), message }))
    return fail('validation_error', { param: 'body', details: { fields }, cause: error })
  }
}

/** JSON, by itself or as the field `payload` of a form: GitHub lets people choose. */
function payloadOf(bytes: Buffer, contentType: string): unknown {
  const text = bytes.toString('utf8')
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(contentType)
  try {
    return JSON.parse(isForm ? (new URLSearchParams(text).get('payload') ?? '') : text)
  } catch (error) {
    return fail('validation_error', { param: 'body', message: 'The body is not JSON.', cause: error })
  }
}
