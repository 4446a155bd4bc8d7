import { uptime } from 'node:os'

/**
 * Milliseconds of a clock that goes on while the machine sleeps and that nobody can set, as the wall clock is set by a person or
 * by a network that comes up late. Linux: CLOCK_BOOTTIME, to the hundredth of a second; Node's monotonic clock stands still there in a
 * sleep. macOS: Node's monotonic clock is `mach_continuous_time`, which counts a sleep (libuv, src/unix/darwin.c).
 */
export type SinceBoot = () => number

export const sinceBoot: SinceBoot =
  process.platform === 'linux' ? () => uptime() * 1_000 : () => Number(process.hrtime.bigint()) / 1e6
