import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { fail } from '../../shared/api/errors.ts'
import { mebibyte } from '../../shared/api/route.ts'
import type { StoredContent } from '../../shared/api/stored-content.ts'
import type { World } from '../../shared/lib/world.ts'
import { BodyChunks, TooSlowError } from './body-chunks.ts'
import type { BodyRoom, Release, RoomOwner } from './body-room.ts'
import { endOf, inflaterOf, refuseTooLarge, refuseTooSlow, smallBytes } from './body.ts'
import { ContentSplitter, SplitError, type Split } from './content-splitter.ts'

/**
 * Reads a body of which one text in base64 is stored while it comes, so that no body is ever in memory as a whole. What goes
 * wrong is told at once; the bytes that were stored until then are the business of `store`, which fails with the same error.
 */
export interface ContentReading {
  key: string
  /** Bytes of the body, after inflating. */
  limit: number
  /** Bytes of the content, decoded. */
  contentLimit: number
  room: BodyRoom
  owner: RoomOwner
  world: World
  store: (content: AsyncIterable<Uint8Array>) => Promise<StoredContent>
  /** The rest of the body is of no use. */
  discard: (content: StoredContent) => Promise<void>
}

export interface ContentBody {
  /** JSON, with a 0 in the place of the content. */
  rest: Buffer
  /** The content that is stored; null: the body has no such text. */
  content: StoredContent | null
  release: Release
}

/** The memory that one such body takes of the room for them: the part that is on its way to a bucket. */
const streamBytes = 2 * mebibyte
/** The most bytes of the body without the content. */
const restLimit = mebibyte
/** The bytes after which many others have their turn: of a connection with much to read, node would read two megabytes in one turn. */
const turnBytes = 64 * 1024
/** The sender has this time for nothing, and more with each byte. */
const graceMs = 15_000

export async function readContentBody(request: IncomingMessage, reading: ContentReading): Promise<ContentBody> {
  const { limit, world } = reading
  const length = Number(request.headers['content-length'] ?? Number.NaN)
  if (length > limit) return refuseTooLarge(request, limit)
  const inflate = inflaterOf((request.headers['content-encoding'] ?? 'identity').trim().toLowerCase())
  const isSmall = inflate === null && length <= smallBytes
  const gone = endOf(request)
  const release = isSmall
    ? () => undefined
    : await reading.room.take(streamBytes, reading.owner, gone.signal).finally(gone.stop)
  const chunks = new BodyChunks(request, { inflate, graceMs, world })
  try {
    return { ...(await split(chunks, reading)), release }
  } catch (error) {
    release()
    return refuse(request, { error, reading, isPacked: inflate !== null })
  } finally {
    gone.stop()
    chunks.close()
  }
}

async function split(chunks: BodyChunks, reading: ContentReading): Promise<Omit<ContentBody, 'release'>> {
  const splitter = new ContentSplitter(reading.key, restLimit)
  const splits = splitsOf(chunks, splitter, reading.limit)
  let content: StoredContent | null = null
  try {
    for (;;) {
      const { done } = await splits.next()
      if (done === true) return { rest: splitter.end(), content }
      content = await reading.store(contentOf(splits, reading.contentLimit))
    }
  } catch (error) {
    if (content !== null) await reading.discard(content)
    throw error
  }
}

async function* splitsOf(chunks: BodyChunks, splitter: ContentSplitter, limit: number): AsyncGenerator<Split, void> {
  let length = 0
  let turnAt = turnBytes
  for (let chunk = await chunks.next(); chunk !== null; chunk = await chunks.next()) {
    length += chunk.length
    if (length > limit) throw new BodyTooLargeError()
    yield* splitter.push(chunk)
    if (length < turnAt) continue
    turnAt = length + turnBytes
    await setImmediate()
  }
}

/** The bytes up to the end of the content. A body that ends within it is cut off. */
async function* contentOf(splits: AsyncGenerator<Split, void>, limit: number): AsyncGenerator<Uint8Array> {
  let length = 0
  for (;;) {
    const { value } = await splits.next()
    if (value === undefined) throw new SplitError('base64')
    if (value.kind === 'end') return
    if (value.kind === 'begin') continue
    length += value.bytes.length
    if (length > limit) throw new ContentTooLargeError()
    yield value.bytes
  }
}

class BodyTooLargeError extends Error {}
class ContentTooLargeError extends Error {}

function refuse(
  request: IncomingMessage,
  { error, reading, isPacked }: { error: unknown; reading: ContentReading; isPacked: boolean },
): never {
  const param = reading.key
  if (error instanceof BodyTooLargeError) return refuseTooLarge(request, reading.limit)
  if (error instanceof TooSlowError) return refuseTooSlow(request)
  if (error instanceof ContentTooLargeError)
    return fail('validation_error', {
      status: 413,
      param,
      message: `The content is larger than the ${reading.contentLimit} bytes that are taken.`,
      details: {
        fields: [{ path: param, message: `more than ${reading.contentLimit} bytes` }],
        limitBytes: reading.contentLimit,
      },
    })
  if (error instanceof SplitError) {
    return fail('validation_error', flaws[error.flaw](param))
  }
  if (request.readableAborted || isUnpacking(error))
    return fail('validation_error', {
      message: isPacked && isUnpacking(error) ? 'The body is not what Content-Encoding says.' : 'The body was cut off.',
      param: isPacked && isUnpacking(error) ? 'Content-Encoding' : 'body',
      cause: error,
    })
  throw error
}

const flaws: Record<SplitError['flaw'], (param: string) => { param: string; message: string }> = {
  base64: (param) => ({ param, message: 'The content is not base64.' }),
  twice: (param) => ({ param, message: 'The content stands there twice.' }),
  rest: (param) => ({ param: 'body', message: `The body holds more than ${restLimit} bytes beside ${param}.` }),
}

/** Errors of zlib have codes of its own. */
const isUnpacking = (error: unknown): boolean => /^(Z_|ERR_|BROTLI_)/.test(String((error as { code?: unknown }).code))
