import { Transform, type Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type Koa from 'koa'
import type { World } from '../../shared/lib/world.ts'
import type { BodyRoom, RoomOwner } from '../http/body-room.ts'

/** What a download takes of memory while its reader is slow: what was read of it, and what waits to be sent. */
export const downloadBytes = 256 * 1024
/** A reader that takes less than this in so long is cut off: others wait for its place. */
export const leastPace = { bytes: 512 * 1024, ms: 60_000 } as const

/** Takes room for a download, until its answer is sent or its reader is gone. Fails with `rate_limit_exceeded`. */
export async function takeRoom(ctx: Koa.Context, room: BodyRoom, owner: RoomOwner): Promise<void> {
  const gone = new AbortController()
  ctx.res.once('close', () => gone.abort())
  if (ctx.res.destroyed) gone.abort()
  const release = await room.take(downloadBytes, owner, gone.signal)
  if (gone.signal.aborted) return release()
  gone.signal.addEventListener('abort', release, { once: true })
}

interface Sending {
  bytes: Readable
  length: number
  to: Writable
}

/**
 * Sends all of it, or fails: also where the reader takes it too slowly, and where the storage gives more or fewer bytes than the reader
 * was told (`length`). On a connection that is kept the reader would take those that are too many for the next answer, or the next answer
 * for those that are missing.
 */
export async function sendPaced({ bytes, length, to }: Sending, world: Pick<World, 'after'>): Promise<void> {
  let taken = 0
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      taken += chunk.length
      if (taken > length) done(new Error(`the storage gives more than ${length} bytes`))
      else done(null, chunk)
    },
    flush(done) {
      done(taken === length ? null : new Error(`the storage gave ${taken} bytes of ${length}`))
    },
  })
  let cancel = () => {}
  const look = (before: number) => {
    cancel = world.after(leastPace.ms, () => {
      if (taken - before < leastPace.bytes) counted.destroy(new Error('its reader is too slow'))
      else look(taken)
    })
  }
  look(0)
  try {
    await pipeline(bytes, counted, to)
  } finally {
    cancel()
  }
}
