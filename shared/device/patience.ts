/**
 * How long a program waits for the device manager of its machine. Milliseconds. A machine that is busy with a hundred
 * runs starts one in a minute instead of half a second: 90 s is what systemd gives a service unless told otherwise.
 */
export const daemonPatience = {
  /** Until one that was started answers. */
  startMs: 90_000,
  /** From its first answer to its link, unless an attempt is still under way. */
  linkMs: 20_000,
  /** Until one that was told to end is gone. */
  stopMs: 90_000,
} as const
