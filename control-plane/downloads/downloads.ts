import type Koa from 'koa'
import type { Knex } from 'knex'
import { ApiError, fail } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Blobs } from '../blobs/blobs.ts'
import { BlobMissingError } from '../blobs/place.ts'
import type { BodyRooms } from '../http/body-room.ts'
import { headerOf } from '../http/headers.ts'
import type { RequestState } from '../http/kernel.ts'
import type { Log } from '../process/log.ts'
import { findFileRevision, type FileRevisionRow } from '../resources/files/revision-store.ts'
import { filesPath, type FileUrls } from '../resources/files/signature.ts'
import { findFileById } from '../resources/files/store.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import { isTagged, byteRangeOf } from './ranges.ts'
import { sendPaced, takeRoom } from './send-paced.ts'

/**
 * Gives the bytes of one version of a file to whoever has a signed URL for it. Bytes that a browser could run are never shown by
 * it: all but pictures made of pixels, and plain text, are saved.
 */
export interface DownloadDependencies {
  root: Knex
  blobs: Pick<Blobs, 'open'>
  urls: Pick<FileUrls, 'read'>
  world: World
  log: Log
  rooms: Pick<BodyRooms, 'downloads'>
}

export function downloads(deps: DownloadDependencies): Koa.Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(`${filesPath}/`)) return next()
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new ApiError('route_not_found', { headers: { Allow: 'GET, HEAD' } })
    const signed = deps.urls.read({ path: ctx.path, search: ctx.querystring, now: deps.world.now() })
    if (signed === null) return fail('http_exception', { message: 'This URL was altered, or it has expired.' })
    const file = await findFileById(deps.root, signed.fileId)
    const isKept = file !== null && (await findWorkspace(deps.root, file.workspaceId)) !== null
    const revision = !isKept ? null : await findFileRevision(deps.root, signed.fileId, signed.revisionId)
    // Deleted since then, by itself or with its workspace.
    if (file === null || file.deletedAt !== null || revision?.blobId == null) return fail('resource_not_found')
    return send(ctx, { ...revision, blobId: revision.blobId, name: file.name, workspaceId: file.workspaceId }, deps)
  }
}

type Sent = FileRevisionRow & { blobId: string; name: string; workspaceId: string }

async function send(ctx: Koa.Context, file: Sent, deps: DownloadDependencies): Promise<void> {
  const { sizeBytes } = file
  const tag = `"${file.sha256}"`
  ctx.set(headersOf(file, tag))
  if (isTagged(headerOf(ctx, 'if-none-match'), tag)) return void (ctx.status = 304)
  const ifRange = headerOf(ctx, 'if-range')
  const mayBePart = ctx.method === 'GET' && (ifRange === undefined || ifRange === tag)
  const range = mayBePart ? byteRangeOf(headerOf(ctx, 'range'), sizeBytes) : null
  if (range === 'unsatisfiable') {
    ctx.set('Content-Range', `bytes */${sizeBytes}`)
    ctx.remove('Content-Disposition')
    ctx.status = 416
    return
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes }
  ctx.status = range === null ? 200 : 206
  if (range !== null) ctx.set('Content-Range', `bytes ${start}-${end - 1}/${sizeBytes}`)
  ctx.length = end - start
  if (ctx.method === 'HEAD') return
  // A URL works for whoever has it, so that the address stands for the reader.
  const owner = { group: file.workspaceId, member: `${file.workspaceId} ${ctx.ip}` }
  await takeRoom(ctx, deps.rooms.downloads, owner)
  const bytes = await deps.blobs.open(file.blobId, range ?? undefined, sizeBytes).catch((error: unknown) => {
    throw error instanceof BlobMissingError ? new ApiError('resource_not_found', { cause: error }) : error
  })
  ctx.respond = false
  ctx.res.statusCode = ctx.status
  try {
    await sendPaced({ bytes, length: end - start, to: ctx.res }, deps.world)
  } catch (error) {
    // The client left, or the storage failed in the middle: either way the connection is cut, which says that bytes are missing.
    deps.log.debug({ err: error, requestId: (ctx.state as RequestState).requestId }, 'a download broke off')
    ctx.res.destroy()
  }
}

function headersOf(file: Sent, tag: string): Record<string, string> {
  const type = (file.contentType ?? octets).split(';')[0]!.trim().toLowerCase()
  const isShown = shown.has(type)
  return {
    'Content-Type': type === 'text/plain' ? 'text/plain; charset=utf-8' : type,
    'Content-Disposition': `${isShown ? 'inline' : 'attachment'}; ${nameOf(file.name)}`,
    ETag: tag,
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  }
}

const octets = 'application/octet-stream'
const shown = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp', 'text/plain'])

/** RFC 6266: a name of ASCII for old clients, and the whole of it. */
function nameOf(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\%]/g, '_')
  const whole = encodeURIComponent(name).replaceAll(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return `filename="${ascii}"; filename*=UTF-8''${whole}`
}
