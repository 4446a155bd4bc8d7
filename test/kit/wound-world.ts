import { realWorld, type World } from '../../shared/lib/world.ts'

/** The real world, but that its time (not its wall clock) passes only when a test says so. */
export interface WoundWorld extends World {
  /** Lets so many milliseconds pass, and the timers that are due by then go off. */
  advance(ms: number): void
  /** Timers that have not gone off. */
  readonly timerCount: number
}

export function woundWorld(): WoundWorld {
  let at = 0
  const timers = new Map<() => void, number>()
  const due = () => [...timers].filter(([, time]) => time <= at).sort(([, a], [, b]) => a - b)[0]
  return {
    ...realWorld,
    monotonic: () => at,
    after(ms, run) {
      const timer = () => run()
      timers.set(timer, at + ms)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      at += ms
      for (let next = due(); next !== undefined; next = due()) {
        timers.delete(next[0])
        next[0]()
      }
    },
    get timerCount() {
      return timers.size
    },
  }
}
