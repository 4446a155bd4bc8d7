import { z } from 'zod'
import { deviceTime } from './bounds.ts'

// How much of its provider's limits an account has used, as a harness tells it. Devices report it with the end of a run.

/** Providers have windows of hours, of a week and of a month. */
const longestWindowMinutes = 40 * 24 * 60
/** More of one account are not believed. */
export const mostLimits = 8

export const usedLimit = z.object({
  windowMinutes: z.number().int().min(1).max(longestWindowMinutes),
  /** Words for the models that it is for; null: all. */
  models: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}$/)
    .nullable(),
  /** Providers let some go beyond all of it. */
  usedPercent: z.number().int().min(0).max(1_000),
  /** In ms since 1970. */
  resetsAt: deviceTime,
})
export type UsedLimit = z.infer<typeof usedLimit>

/** What does not fit is left out by itself: it is shown to people, and no reason to refuse what came with it. */
export const usedLimits = z
  .unknown()
  .transform((told): UsedLimit[] =>
    Array.isArray(told) ? told.slice(0, mostLimits).flatMap((one) => usedLimit.safeParse(one).data ?? []) : [],
  )

/** What people call a limit: `5-hour`, `7-day`, `7-day opus`. */
export function limitName({ windowMinutes, models }: Pick<UsedLimit, 'windowMinutes' | 'models'>): string {
  const [count, unit] =
    windowMinutes % 1_440 === 0
      ? [windowMinutes / 1_440, 'day']
      : windowMinutes % 60 === 0
        ? [windowMinutes / 60, 'hour']
        : [windowMinutes, 'minute']
  return `${count}-${unit}${models === null ? '' : ` ${models}`}`
}
