import { realWorld, type World } from '../../shared/lib/world.ts'

/** The real world, whose time passes by itself, and much faster while a test says so. */
export interface HastenedWorld extends World {
  /**
   * Lets so much time pass in strides: the timers that are due go off with each, and what they begin gets some turns of the event loop.
   * A stride is shorter than a jump of the clock by which a program sees that its machine slept.
   */
  pass(ms: number): Promise<void>
}

const strideMs = 5_000
/** The turns in which sockets on loopback and a database in this process answer. */
const turns = 3

interface Timer {
  dueAt: number
  run: () => void
  real: NodeJS.Timeout
}

export function hastenedWorld(): HastenedWorld {
  let ahead = 0
  const timers = new Set<Timer>()
  const monotonic = () => realWorld.monotonic() + ahead
  const arm = (timer: Timer, keepsAlive: boolean) => {
    clearTimeout(timer.real)
    // Looked at again where the real timer is at its end before the time is.
    timer.real = setTimeout(
      () => look(timer, keepsAlive),
      Math.min(2 ** 31 - 1, Math.max(0, timer.dueAt - monotonic())),
    )
    if (!keepsAlive) timer.real.unref()
  }
  const look = (timer: Timer, keepsAlive: boolean) => {
    if (!timers.has(timer)) return
    if (timer.dueAt <= monotonic() + 1) goOff(timer)
    else arm(timer, keepsAlive)
  }
  const goOff = (timer: Timer) => {
    timers.delete(timer)
    clearTimeout(timer.real)
    timer.run()
  }
  const begin = (ms: number, run: () => void, { keepsAlive }: { keepsAlive: boolean }) => {
    const timer: Timer = { dueAt: monotonic() + ms, run, real: setTimeout(() => undefined, 0) }
    timers.add(timer)
    arm(timer, keepsAlive)
    return () => {
      timers.delete(timer)
      clearTimeout(timer.real)
    }
  }
  return {
    ...realWorld,
    now: () => Math.round(Date.now() + ahead),
    monotonic,
    after: (ms, run) => begin(ms, run, { keepsAlive: false }),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const fail = () => {
          cancel()
          reject(signal?.reason as Error)
        }
        const cancel = begin(
          ms,
          () => {
            signal?.removeEventListener('abort', fail)
            resolve()
          },
          { keepsAlive: true },
        )
        if (signal?.aborted) fail()
        else signal?.addEventListener('abort', fail, { once: true })
      }),
    async pass(ms) {
      for (let left = ms; left > 0; left -= strideMs) {
        ahead += Math.min(left, strideMs)
        const now = monotonic()
        const due = [...timers].filter(({ dueAt }) => dueAt <= now).toSorted((a, b) => a.dueAt - b.dueAt)
        for (const timer of due) if (timers.has(timer)) goOff(timer)
        for (let turn = 0; turn < turns; turn++) await new Promise((done) => setImmediate(done))
      }
    },
  }
}
