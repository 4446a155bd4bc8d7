import type Koa from 'koa'
import { fail } from '../../shared/api/errors.ts'
import { mebibyte, rawBody, type AnyRoute } from '../../shared/api/route.ts'
import { StoredContent } from '../../shared/api/stored-content.ts'
import { knownBytes, type Release, type RoomOwner } from './body-room.ts'
import { parseJsonBody, readBody } from './body.ts'
import { callerKey, type Caller } from './callers.ts'
import { readContentBody } from './content-body.ts'
import { headerOf } from './headers.ts'
import type { Kernel } from './kernel.ts'

/** Reads the body of a request as its route takes it. */
interface ServedRoute {
  route: AnyRoute
  kernel: Kernel
}

async function censored(kernel: Kernel, caller: Caller | null, body: unknown): Promise<unknown> {
  const isText = typeof body === 'object' && body !== null && !(body instanceof Uint8Array)
  return caller?.kind === 'agent' && isText && kernel.censor ? kernel.censor(caller, body) : body
}

interface TakenBody {
  body: unknown
  release: Release
  content?: StoredContent | null
}

/** The bytes are read, within the limit, even when the route takes no body. */
export async function takeBody(served: ServedRoute, ctx: Koa.Context, caller: Caller | null): Promise<TakenBody> {
  const { route, kernel } = served
  if (route.streamed !== null && caller !== null) return takeStreamed(served, ctx, { caller, streamed: route.streamed })
  const { world, rooms } = kernel
  const room = caller === null ? rooms.strangers : route.bodyLimit > knownBytes ? rooms.bundles : rooms.known
  const { bytes, release } = await readBody(ctx.req, {
    limit: route.bodyLimit,
    room,
    owner: ownerOf(ctx, caller),
    world,
  })
  if (route.body === rawBody) return { body: bytes, release }
  if (route.body.def.type === 'undefined') return { body: undefined, release }
  try {
    if (route.softLimit !== null && bytes.length > route.softLimit.bytes)
      fail(route.softLimit.code, { message: `The body has more than ${route.softLimit.bytes} bytes.` })
    const body = parseJsonBody(bytes, headerOf(ctx, 'content-type'))
    // Other requests have their turn before the work on a large body.
    if (bytes.length > mebibyte) await room.yieldToLoop()
    return { body: await censored(kernel, caller, body), release }
  } catch (error) {
    release()
    throw error
  }
}

/** The content is stored while it comes; what checks and hashes bodies sees its digest only. */
async function takeStreamed(
  { route, kernel }: ServedRoute,
  ctx: Koa.Context,
  { caller, streamed }: { caller: Caller; streamed: { key: string; limit: number } },
): Promise<TakenBody> {
  const { blobs, rooms, world } = kernel
  const { workspaceId } = caller
  const { rest, content, release } = await readContentBody(ctx.req, {
    key: streamed.key,
    limit: route.bodyLimit,
    contentLimit: streamed.limit,
    room: rooms.streamed,
    owner: ownerOf(ctx, caller),
    world,
    store: async (source) => new StoredContent(await blobs.put(source, { workspaceId })),
    discard: ({ blobId }) => blobs.giveUp(blobId),
  })
  try {
    const body = await censored(kernel, caller, parseJsonBody(rest, headerOf(ctx, 'content-type')))
    return { body: withContent(body, streamed.key, content), release, content }
  } catch (error) {
    release()
    if (content !== null) await blobs.giveUp(content.blobId)
    throw error
  }
}

/** A body that is no object, or has no content, is refused later, by its schema. */
function withContent(body: unknown, key: string, content: StoredContent | null): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  return content === null ? body : { ...body, [key]: content }
}

/** Returns the owner for whom the room of a request counts. */
export const ownerOf = (ctx: Koa.Context, caller: Caller | null): RoomOwner =>
  caller === null
    ? { group: `address:${ctx.ip}`, member: `address:${ctx.ip}` }
    : { group: caller.workspaceId, member: callerKey(caller) }
