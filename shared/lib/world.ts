import { idFrom, type IdOf } from './ids.ts'

/**
 * The outside world as a value: everything a function would otherwise take from the clock, from chance, or by waiting.
 * Tests pass a world of their own and move its clock.
 */
export interface World {
  /** Wall clock, milliseconds since 1970 UTC. */
  now(): number
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonic(): number
  /** `prefix` + 16 random base62 characters, for example `run_8fK2...`. */
  id<Prefix extends string>(prefix: Prefix): IdOf<Prefix>
  /** The type that is expected says whose it will be. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  uuid<Kind extends string = string>(): Kind
  /** `byteCount` random bytes from a cryptographic source. */
  bytes(byteCount: number): Uint8Array
  /** Uniform in [0, 1). */
  random(): number
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `fn` once after `ms`. The timer does not keep the process alive. Returns a function that cancels it. */
  after(ms: number, fn: () => void): () => void
}

/** A timer of Node that is given more ends at once. */
const longestMs = 2 ** 31 - 1

/** Calls `fn` once after `ms`, however long that is. Returns a function that cancels it. */
function startTimer(ms: number, fn: () => void, { keepsAlive }: { keepsAlive: boolean }): () => void {
  let timer: NodeJS.Timeout
  const wait = (left: number) => {
    timer = left > longestMs ? setTimeout(() => wait(left - longestMs), longestMs) : setTimeout(fn, left)
    if (!keepsAlive) timer.unref()
  }
  wait(ms)
  return () => clearTimeout(timer)
}

export const realWorld: World = {
  now: () => Date.now(),
  // `performance` would load another module of Node's, which takes a call of `svc` two milliseconds.
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  id: <Prefix extends string>(prefix: Prefix) =>
    (prefix + base62(crypto.getRandomValues(new Uint8Array(24)), 16)) as IdOf<Prefix>,
  uuid: () => idFrom(crypto.randomUUID()),
  bytes: (byteCount) => crypto.getRandomValues(new Uint8Array(byteCount)),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error)
      const ended = () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      const cancel = startTimer(ms, ended, { keepsAlive: true })
      const onAbort = () => {
        cancel()
        reject(signal?.reason as Error)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
    }),
  after: (ms, fn) => startTimer(ms, fn, { keepsAlive: false }),
}

export const base62Digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * `length` base62 characters from random bytes. Bytes of 248 and above are ignored, so that all characters are equally
 * likely.
 */
export function base62(bytes: Uint8Array, length: number): string {
  let text = ''
  for (const byte of bytes) {
    if (byte >= 248) continue
    text += base62Digits[byte % 62]
    if (text.length === length) return text
  }
  // All random bytes were used up (a chance of one in millions for 24 bytes), so the rest reuses them.
  for (let at = 0; text.length < length; at++) text += base62Digits[(bytes[at % bytes.length] ?? 0) % 62]
  return text
}
