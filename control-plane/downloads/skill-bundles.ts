import { PassThrough } from 'node:stream'
import type Koa from 'koa'
import type { Knex } from 'knex'
import { bundlesPath } from '../../shared/device/bundle.ts'
import { ApiError, fail } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Blobs } from '../blobs/blobs.ts'
import { BlobMissingError } from '../blobs/place.ts'
import type { BodyRooms } from '../http/body-room.ts'
import { bearerOf, headerOf } from '../http/headers.ts'
import type { RequestState } from '../http/kernel.ts'
import type { Log } from '../process/log.ts'
import { deviceOfToken } from '../resources/devices/lookup.ts'
import { totalOf } from '../resources/skills/bundle.ts'
import { findBundleByHash } from '../resources/skills/bundle-store.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import { sendPaced, takeRoom } from './send-paced.ts'

/**
 * Gives a device the files of a skill that its workspace has or had, by the hash of their list: a line of JSON with the list, then the
 * contents in its order (shared/device/bundle.ts).
 */
export interface BundleDependencies {
  root: Knex
  blobs: Pick<Blobs, 'open'>
  world: World
  log: Log
  rooms: Pick<BodyRooms, 'downloads'>
}

export function skillBundles({ root, blobs, world, log, rooms }: BundleDependencies): Koa.Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(`${bundlesPath}/`)) return next()
    if (ctx.method !== 'GET') throw new ApiError('route_not_found', { headers: { Allow: 'GET' } })
    const device = await deviceOfToken(root, bearerOf(headerOf(ctx, 'authorization') ?? ''), world.now())
    // The room is taken first: what is read of a skill stays in memory until its reader has it.
    await takeRoom(ctx, rooms.downloads, { group: device.workspaceId, member: device.deviceUuid })
    const isKept = (await findWorkspace(root, device.workspaceId)) !== null
    const bundleHash = ctx.path.slice(bundlesPath.length + 1)
    const isHash = /^[0-9a-f]{64}$/.test(bundleHash)
    const bundle = isKept && isHash ? await findBundleByHash(root, device.workspaceId, bundleHash) : null
    if (bundle === null) return fail('resource_not_found', { message: 'This workspace has no such skill.' })
    const { files } = bundle
    const head = Buffer.from(`${JSON.stringify({ files })}\n`)
    const size = totalOf(files)
    const bytes =
      size === 0
        ? new PassThrough().end()
        : await blobs.open(bundle.blobId, undefined, size).catch((error: unknown) => {
            throw error instanceof BlobMissingError ? new ApiError('resource_not_found', { cause: error }) : error
          })
    ctx.set({ 'Content-Type': 'application/octet-stream', 'Cache-Control': 'no-store' })
    ctx.respond = false
    ctx.res.statusCode = 200
    ctx.res.setHeader('Content-Length', head.length + size)
    try {
      ctx.res.write(head)
      await sendPaced({ bytes, length: size, to: ctx.res }, world)
    } catch (error) {
      // The device left, or the storage failed in the middle: the connection is cut, which says that bytes are missing.
      log.debug({ err: error, requestId: (ctx.state as RequestState).requestId }, 'a download of a skill broke off')
      ctx.res.destroy()
    }
  }
}
