import type { IncomingMessage } from 'node:http'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Readable } from 'node:stream'
import { fail } from '../../shared/api/errors.ts'
import { isStorable } from '../../shared/lib/storable.ts'
import type { World } from '../../shared/lib/world.ts'
import type { BodyRoom, Release, RoomOwner } from './body-room.ts'
import { jsonExcess } from './json-size.ts'

// Reads request bodies: the limit counts bytes after inflating, what is not JSON we can store is refused, and a large body
// is read only when there is room for it.

/** Deeper JSON is refused before recursive code sees it. */
const maxDepth = 100
/** The most values of a body. A body with more is refused before it is parsed: the cost for the event loop goes by their number. */
const maxValues = 50_000
const maxKeys = 5_000

/** A larger body takes room; one that is not larger is read at once. */
export const smallBytes = 64 * 1024

/** The time before a body must arrive. It is shorter for a body that has room, since others wait for that. */
const graceMs = 15_000
const graceWithRoomMs = 5_000

interface BodyReading {
  limit: number
  /** The limit of a body that does not say how long it is; default `limit`. */
  limitWithoutLength?: number
  /** A body has no more time than this; default: as much as its bytes give it. */
  mostMs?: number
  room: BodyRoom
  owner: RoomOwner
  world: World
  /** Honours Content-Encoding; default true. */
  mayBePacked?: boolean
  /** Sees the bytes as they came. */
  onChunk?: (chunk: Buffer) => void
}

interface ReadBody {
  bytes: Buffer
  /** Called once the bytes, and what was made of them, are of no more use. */
  release: Release
}

const nothing: ReadBody = { bytes: Buffer.alloc(0), release: () => undefined }

/**
 * Fails with `payload_too_large` when more than `limit` bytes come, counted after inflating, and with `validation_error`
 * when they come too slowly; the connection ends then.
 */
export async function readBody(request: IncomingMessage, reading: BodyReading): Promise<ReadBody> {
  const { room, mostMs } = reading
  const length = request.headers['content-length']
  if (length === undefined && request.headers['transfer-encoding'] === undefined) return nothing
  const limit = length === undefined ? (reading.limitWithoutLength ?? reading.limit) : reading.limit
  // A packed body is larger than its content by a few bytes at most, so the limit holds for both.
  if (Number(length) > limit) return refuseTooLarge(request, limit)
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const inflate = inflaterOf(reading.mayBePacked === false ? refusedUnless(encoding) : encoding)
  // The size of a packed body, or of one without a length, is known only at its end.
  const most = length === undefined || inflate !== null ? limit : Number(length)
  const collecting = { ...reading, limit, inflate }
  if (most <= smallBytes) {
    return { bytes: await collect(request, collecting, { graceMs, mostMs }), release: nothing.release }
  }
  const gone = endOf(request)
  const release = await room.take(most, reading.owner, gone.signal).finally(gone.stop)
  try {
    const bytes = await collect(request, collecting, { graceMs: graceWithRoomMs, mostMs })
    await room.yieldToLoop()
    return { bytes, release }
  } catch (error) {
    release()
    throw error
  }
}

/** Aborts when the sender is gone; nobody else tells while nothing is read. */
export function endOf(request: IncomingMessage): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort()
  if (request.destroyed) abort()
  request.once('close', abort)
  return { signal: controller.signal, stop: () => void request.off('close', abort) }
}

type Inflater = ReturnType<typeof inflaterOf>

interface Collecting extends Pick<BodyReading, 'limit' | 'world' | 'onChunk'> {
  inflate: Inflater
}

async function collect(
  request: IncomingMessage,
  { limit, inflate, world, onChunk }: Collecting,
  pace: Pace,
): Promise<Buffer> {
  if (onChunk !== undefined) request.on('data', onChunk)
  try {
    return await gather(request, inflate, { limit, pace: { ...pace, world } })
  } catch (error) {
    if (inflate !== null) {
      request.unpipe(inflate)
      inflate.destroy()
    }
    if (error instanceof TooLarge) return refuseTooLarge(request, limit)
    if (error instanceof TooSlow) return refuseTooSlow(request)
    return fail('validation_error', {
      message: inflate === null ? 'The body was cut off.' : 'The body is not what Content-Encoding says.',
      param: inflate === null ? 'body' : 'Content-Encoding',
      cause: error,
    })
  } finally {
    if (onChunk !== undefined) request.off('data', onChunk)
  }
}

class TooSlow extends Error {}
class TooLarge extends Error {}

/** Reads all bytes of the body; settles whatever becomes of the connection, which may be gone before this is called. */
function gather(
  request: IncomingMessage,
  inflate: Inflater,
  { limit, pace }: { limit: number; pace: Pace & { world: World } },
): Promise<Buffer> {
  const source: Readable = inflate ?? request
  const chunks: Buffer[] = []
  let length = 0
  let stopWatch = () => {}
  return new Promise<Buffer>((resolve, reject) => {
    const cutOff = () => {
      if (!request.readableEnded) reject(new Error('the request was cut off'))
    }
    source.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) reject(new TooLarge())
      else chunks.push(chunk)
    })
    source.once('end', () => resolve(Buffer.concat(chunks, length)))
    source.once('error', reject)
    stopWatch = watchPace(request, pace, () => reject(new TooSlow()))
    request.once('error', reject)
    request.once('close', cutOff)
    if (request.destroyed) cutOff()
    if (inflate !== null) request.pipe(inflate)
  }).finally(() => {
    stopWatch()
    chunks.length = 0
    source.removeAllListeners('data')
  })
}

/** The encoding, where none but `identity` is taken. */
function refusedUnless(encoding: string): string {
  return encoding === 'identity' ? encoding : refuseEncoding(['identity'])
}

export function inflaterOf(encoding: string) {
  if (encoding === 'identity') return null
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  if (encoding === 'deflate') return createInflate()
  if (encoding === 'br') return createBrotliDecompress()
  return refuseEncoding(['identity', 'gzip', 'deflate', 'br'])
}

function refuseEncoding(allowedValues: string[]): never {
  return fail('validation_error', {
    message: 'This Content-Encoding is not read.',
    param: 'Content-Encoding',
    allowedValues,
  })
}

/**
 * The rest is read and thrown away while the answer goes out: closing on a sender that still sends would reset the
 * connection, and it would see only that. The server's request timeout ends a sender that never stops.
 */
export function refuseTooLarge(request: IncomingMessage, limit: number): never {
  request.resume()
  return fail('payload_too_large', {
    message: `The body is larger than the ${limit} bytes this route takes.`,
    details: { limitBytes: limit },
  })
}

/** Drops the little that still comes. The connection ends with the answer, or the sender would keep it. */
export function refuseTooSlow(request: IncomingMessage): never {
  request.resume()
  return fail('validation_error', {
    message: 'The body came too slowly.',
    param: 'body',
    headers: { Connection: 'close' },
  })
}

/** The JSON of a body; an empty one is `{}`. */
export function parseJsonBody(bytes: Buffer, contentType: string | undefined): unknown {
  if (bytes.length === 0) return {}
  if (contentType !== undefined && !/^application\/(?:[\w.-]+\+)?json\s*(;|$)/i.test(contentType)) {
    fail('validation_error', { message: 'Send the body as application/json.', param: 'Content-Type' })
  }
  const excess = jsonExcess(bytes, { values: maxValues, depth: maxDepth, keys: maxKeys })
  if (excess === 'depth') return refuseFlaw({ path: '', message: 'nested too deeply' })
  if (excess !== null)
    return fail('payload_too_large', {
      message: `The body holds more than ${maxValues} values, or an object of more than ${maxKeys}.`,
      details: { limitValues: maxValues, limitKeys: maxKeys },
    })
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    fail('validation_error', { message: 'The body is not JSON in UTF-8.', param: 'body', cause: error })
  }
  const flaw = flawOf(value)
  return flaw === null ? value : refuseFlaw({ path: flaw.path.toReversed().join('.'), message: flaw.message })
}

function refuseFlaw(flaw: { path: string; message: string }): never {
  return fail('validation_error', {
    message: 'The body holds something that cannot be stored.',
    param: flaw.path || 'body',
    details: { fields: [flaw] },
  })
}

interface Flaw {
  /** The path from the flaw outwards: it is put together only when there is one. */
  path: (string | number)[]
  message: string
}

/** Text that PostgreSQL cannot hold (NUL) or UTF-8 cannot write (half a surrogate pair), or a dangerous key. */
function flawOf(value: unknown): Flaw | null {
  if (typeof value === 'string') return textFlaw(value)
  if (typeof value !== 'object' || value === null) return null
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const flaw = flawOf(value[at])
      if (flaw !== null) return within(flaw, at)
    }
    return null
  }
  for (const key of Object.keys(value)) {
    const wrong = key === '__proto__' ? { path: [], message: 'the key __proto__' } : textFlaw(key)
    if (wrong !== null) return wrong
    const flaw = flawOf((value as Record<string, unknown>)[key])
    if (flaw !== null) return within(flaw, key)
  }
  return null
}

function within(flaw: Flaw, key: string | number): Flaw {
  flaw.path.push(key)
  return flaw
}

function textFlaw(text: string): Flaw | null {
  return isStorable(text) ? null : { path: [], message: 'a NUL character or an unpaired surrogate' }
}

/**
 * The pace at which a body must come. Its time goes by what has arrived and not by what it may hold: a sender that says a large
 * length, or none, and then sends nothing is noticed after the grace.
 */
interface Pace {
  /** The time (ms) within which nothing needs to arrive. */
  graceMs: number
  /** The body has no more time than this, however steadily it comes; default: as its bytes give it. */
  mostMs?: number | undefined
}

/** The bytes that must have come for each second after the grace. */
export const slowestBytesPerS = 64 * 1024

/** Calls `tooSlow` once, when a body falls behind before all of it is here. Returns a function that ends the watch. */
function watchPace(
  request: IncomingMessage,
  { graceMs, mostMs = Infinity, world }: Pace & { world: World },
  tooSlow: () => void,
): () => void {
  const startedAt = world.monotonic()
  let arrived = 0
  let stopTimer = () => {}
  const count = (chunk: Buffer) => void (arrived += chunk.length)
  const check = () => {
    const dueMs = Math.min(graceMs + (arrived / slowestBytesPerS) * 1_000, mostMs)
    const leftMs = startedAt + dueMs - world.monotonic()
    if (leftMs > 0) stopTimer = world.after(Math.ceil(leftMs), check)
    else tooSlow()
  }
  // Work after the last byte, such as unpacking, is no fault of the sender's.
  const stop = () => {
    stopTimer()
    request.off('data', count)
    request.off('end', stop)
  }
  request.on('data', count)
  request.once('end', stop)
  check()
  return stop
}
