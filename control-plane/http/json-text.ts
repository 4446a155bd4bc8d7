import { setImmediate as nextTurn } from 'node:timers/promises'
import type Koa from 'koa'
import type { World } from '../../shared/lib/world.ts'
import type { Caller } from './callers.ts'
import { setHeaders } from './headers.ts'
import { checkAgain, drained } from './sse.ts'

/**
 * The answer of a route whose one long text is sent as it is made: an object with one key. What the reader does not take is not
 * read from the source either, and a reader that takes nothing is cut off, so it holds a bounded memory for a bounded time.
 */
export class JsonText {
  readonly key: string
  readonly source: AsyncGenerator<string>
  /** Fails as the handler does for a caller who may not read it any more; it is asked again and again while it is sent. */
  readonly mayStillRead: (caller: Caller) => Promise<unknown>

  constructor(key: string, source: AsyncGenerator<string>, mayStillRead: JsonText['mayStillRead']) {
    this.key = key
    this.source = source
    this.mayStillRead = mayStillRead
  }
}

export interface TextLimits {
  /** A reader with more than this waiting for it gets `stallMs` to take it. */
  bufferedBytes: number
  stallMs: number
  /** The whole of it takes no longer. */
  totalMs: number
  checkMs: number
}
export const textLimits: TextLimits = {
  bufferedBytes: 512 * 1024,
  stallMs: 30_000,
  totalMs: 10 * 60_000,
  checkMs: 10_000,
}

/** A longer answer is not kept for its idempotency key. */
const keptChars = 256 * 1024

interface SendOptions {
  world: World
  /** Aborted when the client is gone or the server stops. */
  signal: AbortSignal
  /** Names and values in turn. */
  headers: readonly string[]
  mayRead: () => Promise<boolean>
  /** Called once, before the end is sent or when there is none: with all of the answer, or null where it is large or broke off. */
  keep?: (body: string | null) => Promise<void>
  limits?: Partial<TextLimits>
}

/** Rejects where the source fails before its first piece; whatever breaks off later cuts the connection. */
export async function sendText(ctx: Koa.Context, text: JsonText, options: SendOptions): Promise<void> {
  const { res: response } = ctx
  const { world } = options
  const limits = { ...textLimits, ...options.limits }
  const { source } = text
  const cut = new AbortController()
  const signal = AbortSignal.any([options.signal, cut.signal])
  const stopTimer = world.after(limits.totalMs, () => cut.abort())
  const stopChecks = checkAgain(world, limits.checkMs, { mayRead: options.mayRead, cut })
  let isWhole = false
  let kept: string | null = `{${JSON.stringify(text.key)}:"`
  try {
    let next = await source.next()
    ctx.respond = false
    setHeaders(response, options.headers)
    response.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8' })
    response.write(kept)
    for (; !next.done && !signal.aborted; next = await source.next()) {
      const piece = JSON.stringify(next.value).slice(1, -1)
      response.write(piece)
      kept = kept !== null && kept.length + piece.length <= keptChars ? kept + piece : null
      if (response.writableLength > limits.bufferedBytes) {
        if (!(await drained(response, { world, signal, stallMs: limits.stallMs }))) break
      }
      await nextTurn()
    }
    isWhole = next.done === true && !signal.aborted
  } finally {
    stopTimer()
    stopChecks()
    await source.return(undefined)
    let isKept = false
    try {
      await options.keep?.(isWhole && kept !== null ? `${kept}"}` : null)
      isKept = true
    } finally {
      // A clean end would say that this is all.
      if (isWhole && isKept) response.end('"}')
      else if (response.headersSent) response.destroy()
    }
  }
}
