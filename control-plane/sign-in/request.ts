import type Koa from 'koa'
import { isStorable } from '../../shared/lib/storable.ts'
import { readBody } from '../http/body.ts'
import { isOwnSender, senderOf } from '../http/sender.ts'
import { isCsrfToken } from './csrf.ts'
import type { SignInDependencies } from './dependencies.ts'

/** A refusal that is shown as a page. */
export class PageRefusal extends Error {
  override name = 'PageRefusal'
  readonly status: number
  readonly title: string

  constructor(status: number, title: string, message: string) {
    super(message)
    this.status = status
    this.title = title
  }
}

const formBytes = 16 * 1024

/** The fields of an urlencoded body; null when it is not one, or a field comes twice (RFC 6749, section 3.2). */
export async function readForm(
  ctx: Koa.Context,
  { rooms, world }: Pick<SignInDependencies, 'rooms' | 'world'>,
): Promise<Map<string, string> | null> {
  const owner = { group: ctx.ip, member: ctx.ip }
  // Forms are too small to need room.
  const { bytes } = await readBody(ctx.req, { limit: formBytes, room: rooms.strangers, owner, world })
  const type = ctx.req.headers['content-type'] ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return null
  const fields = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(bytes.toString('utf8'))) {
    if (fields.has(name) || !isStorable(value)) return null
    fields.set(name, value)
  }
  return fields
}

/** The fields of a form that this server's own page sent. `cookie` is the one its token was made from. */
export async function readOwnForm(
  ctx: Koa.Context,
  deps: SignInDependencies,
  cookie: string | null,
): Promise<Map<string, string>> {
  const fields = await readForm(ctx, deps)
  if (fields === null) throw new PageRefusal(400, 'Not read', 'This is not a form of this page.')
  if (!isOwnSender(senderOf(ctx.req, deps.publicUrl)))
    throw new PageRefusal(403, 'Refused', 'This form was sent by another site.')
  if (cookie === null || !isCsrfToken(cookie, fields.get('csrf') ?? ''))
    throw new PageRefusal(403, 'Refused', 'This form is too old, or is not of this browser. Open the page again.')
  return fields
}

/**
 * The address by which the caller reaches this server: the public one, else the one it asked for. Only that caller sees
 * it, and no cache keeps it, so a made-up Host misleads nobody else.
 */
export function addressFor(ctx: Koa.Context, { publicUrl }: SignInDependencies): string {
  if (publicUrl !== null) return publicUrl
  const { host } = ctx.req.headers
  const url = host !== undefined && /^[\w.:[\]-]{1,255}$/.test(host) ? `http://${host}` : ''
  if (!URL.canParse(url)) throw new PageRefusal(400, 'Not read', 'The request names no host.')
  return new URL(url).origin
}

export function queryOf(ctx: Koa.Context, name: string): string | null {
  const value = new URLSearchParams(ctx.querystring).get(name)
  return value === null || value === '' ? null : value
}
