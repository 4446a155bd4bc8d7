import { z } from 'zod'

/** A time as providers tell when a limit is over: whole seconds since 1970. Read as milliseconds. */
export const resetTime = z
  .number()
  .positive()
  .max(100_000_000_000)
  .transform((seconds) => Math.ceil(seconds) * 1000)
