import type { ServerResponse } from 'node:http'
import type { World } from '../../shared/lib/world.ts'
import type { Caller } from './callers.ts'

// Server-sent events with back-pressure: what the reader does not take is not read from the source either.

export interface StreamMessage {
  /** The id of the event, sent as `id:`; the reader comes back with it as Last-Event-ID. */
  id: string | null
  event: string | null
  /** A string is sent as it is (JSON text, for example); anything else as JSON. */
  data: unknown
}

/**
 * A handler returns it to answer with a stream. Its source is ended (`return`) when the reader is gone. `mayStillRead`
 * fails as the handler does for a caller who may not read it any more; it is asked again and again while the stream lasts.
 */
export class EventStream {
  readonly source: AsyncIterable<StreamMessage>
  readonly mayStillRead: (caller: Caller) => Promise<unknown>
  constructor(source: AsyncIterable<StreamMessage>, mayStillRead: (caller: Caller) => Promise<unknown>) {
    this.source = source
    this.mayStillRead = mayStillRead
  }
}

export interface StreamLimits {
  heartbeatMs: number
  /** A reader with more than this waiting for it gets `stallMs` to take it, then is cut off. */
  bufferedBytes: number
  stallMs: number
  /** The time between two looks whether the reader may still read. */
  checkMs: number
}
export const streamLimits: StreamLimits = {
  heartbeatMs: 15_000,
  bufferedBytes: 1024 * 1024,
  stallMs: 30_000,
  checkMs: 10_000,
}

export interface StreamOptions {
  source: AsyncIterable<StreamMessage>
  world: World
  /** Ends the stream: the client is gone, or the server stops. */
  signal: AbortSignal
  /** Resolves false once the reader may not read any more: the stream is cut off. */
  mayRead?: () => Promise<boolean>
  limits?: Partial<StreamLimits>
}

/** Resolves when the stream is over, for whatever reason; rejects only when the source does. */
export async function sendStream(response: ServerResponse, options: StreamOptions): Promise<void> {
  const { world } = options
  const limits = { ...streamLimits, ...options.limits }
  response.statusCode = 200
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8')
  response.setHeader('Cache-Control', 'no-store')
  // Proxies that collect answers would hold events back.
  response.setHeader('X-Accel-Buffering', 'no')
  response.flushHeaders()
  // A HEAD request gets the headers alone; a stream of nothing would hold its connection until the source ends.
  if (response.req.method === 'HEAD') return void response.end()
  const stopHeartbeat = repeat(world, limits.heartbeatMs, () => {
    if (response.writableLength === 0) response.write(':\n\n')
  })
  const cut = new AbortController()
  const signal = AbortSignal.any([options.signal, cut.signal])
  const stopChecks = checkAgain(world, limits.checkMs, { mayRead: options.mayRead, cut })
  const iterator = options.source[Symbol.asyncIterator]()
  const reader = abortable(iterator, signal)
  let isFailed = true
  try {
    for (;;) {
      const next = await reader.next()
      if (next === null || next.done) break
      response.write(formatMessage(next.value))
      if (response.writableLength <= limits.bufferedBytes) continue
      if (!(await drained(response, { world, signal, stallMs: limits.stallMs }))) {
        response.destroy()
        break
      }
    }
    isFailed = cut.signal.aborted
  } finally {
    stopHeartbeat()
    stopChecks()
    reader.stop()
    // An answer cut off in the middle tells the reader to come back; a clean end would say that there is no more.
    if (isFailed) response.destroy()
    else response.end()
    // The return is not awaited: a source that waits for its next event ends when it is told, which may be later.
    iterator.return?.().catch(() => undefined)
  }
}

export function formatMessage({ id, event, data }: StreamMessage): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return (id === null ? '' : `id: ${id}\n`) + (event === null ? '' : `event: ${event}\n`) + lines.join('') + '\n'
}

function repeat(world: World, ms: number, run: () => void): () => void {
  let stop = world.after(ms, tick)
  function tick() {
    run()
    stop = world.after(ms, tick)
  }
  return () => stop()
}

/** Makes one check after another, however long each takes. A check that fails for another reason is made again. */
export function checkAgain(
  world: World,
  ms: number,
  { mayRead, cut }: { mayRead: StreamOptions['mayRead']; cut: AbortController },
): () => void {
  if (mayRead === undefined) return () => undefined
  let isStopped = false
  let stopTimer = world.after(ms, check)
  function check() {
    const again = () => {
      if (!isStopped) stopTimer = world.after(ms, check)
    }
    mayRead!().then((may) => (may ? again() : cut.abort()), again)
  }
  return () => {
    isStopped = true
    stopTimer()
  }
}

/**
 * `next` of an iterator that returns null once the signal is aborted. One listener for the whole stream: a race against a
 * promise that lives as long as the stream would keep a reaction for every message.
 */
function abortable(iterator: AsyncIterator<StreamMessage>, signal: AbortSignal) {
  let giveUp = () => {}
  const onAbort = () => giveUp()
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    next: () =>
      new Promise<IteratorResult<StreamMessage> | null>((resolve, reject) => {
        giveUp = () => resolve(null)
        if (signal.aborted) giveUp()
        else iterator.next().then(resolve, reject)
      }),
    stop: () => signal.removeEventListener('abort', onAbort),
  }
}

/** False when the reader took nothing of what waits for it in time. */
export function drained(response: ServerResponse, options: { world: World; signal: AbortSignal; stallMs: number }) {
  return new Promise<boolean>((resolve) => {
    const done = (isDrained: boolean) => {
      stopTimer()
      response.off('drain', onDrain)
      options.signal.removeEventListener('abort', onAbort)
      resolve(isDrained)
    }
    const onDrain = () => done(true)
    const onAbort = () => done(true)
    const stopTimer = options.world.after(options.stallMs, () => done(false))
    response.once('drain', onDrain)
    options.signal.addEventListener('abort', onAbort, { once: true })
  })
}
