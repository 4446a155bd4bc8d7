import { fail } from '../../shared/api/errors.ts'
import { callerKey, type Caller } from './callers.ts'

/** The streams of a caller are bounded, since each looks into the database every few seconds. */
export const streamsPerCaller = 100
/** Streams last long, so a place gets free at no time that could be told. */
const retryAfterS = 10

/** Counts the streams that each caller holds open at this process. */
export class OpenStreams {
  private readonly counts = new Map<string, number>()

  /** Returns what gives the place back. Fails with `rate_limit_exceeded`. */
  take(caller: Caller): () => void {
    const key = callerKey(caller)
    const count = this.counts.get(key) ?? 0
    if (count >= streamsPerCaller)
      fail('rate_limit_exceeded', {
        message: `At most ${streamsPerCaller} streams may be open at once: close some of them.`,
        details: { retryAfter: retryAfterS },
        headers: { 'Retry-After': String(retryAfterS) },
      })
    this.counts.set(key, count + 1)
    return () => {
      const left = (this.counts.get(key) ?? 1) - 1
      if (left === 0) this.counts.delete(key)
      else this.counts.set(key, left)
    }
  }
}
