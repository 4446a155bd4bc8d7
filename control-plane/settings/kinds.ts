import { z } from 'zod'
import { isOnThisMachine } from './addresses.ts'

/** What a variable of the environment holds, and what its refusal says. */
export interface Setting<Schema extends z.ZodType = z.ZodType> {
  schema: Schema
  /** Ends the sentence "NAME must be ...". An issue of the schema with a message of its own goes before it. */
  must: string
  example: string
  /** Its value never stands in a refusal, nor in a log. */
  isSecret?: true
}

/** Numbers are digits alone: `Number` also reads an empty text, `0x10` and `1e3`. */
const digits = /^\d{1,16}$/
const wholeNumber = (least: number, most: number) =>
  z.union([z.number(), z.string().regex(digits).transform(Number)]).pipe(z.number().int().min(least).max(most))

interface Range {
  least: number
  most: number
  example: string
}

export const count = ({ least, most, example }: Range, fallback: number) => ({
  schema: wholeNumber(least, most).default(fallback),
  must: `a whole number from ${least} to ${most}`,
  example,
})

const longestMs = 30 * 86_400_000
const durationMust = (leastMs: number) => `a whole number of milliseconds from ${leastMs} to ${longestMs} (30 days)`

export const milliseconds = (fallback: number) => ({
  schema: wholeNumber(1, longestMs).default(fallback),
  must: durationMust(1),
  example: String(fallback),
})

export const optionalMilliseconds = ({ leastMs, example }: { leastMs: number; example: string }) => ({
  schema: wholeNumber(leastMs, longestMs).optional(),
  must: durationMust(leastMs),
  example,
})

/** Whole days; left out: without an end. */
export const optionalDays = () => ({
  schema: wholeNumber(1, mostDays).optional(),
  must: `a whole number of days from 1 to ${mostDays}`,
  example: '365',
})
/** A hundred years. */
const mostDays = 36_500

export const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words, fallback: Words[number]) => ({
  schema: z.enum(words).default(fallback as never),
  must: `one of ${words.join(', ')}`,
  example: fallback,
})

export const onOrOff = () => ({
  schema: z
    .enum(['0', '1', 'true', 'false'])
    .default('0')
    .transform((value) => value === '1' || value === 'true'),
  must: '1 (or true) or 0 (or false)',
  example: '1',
})

export const words = (example: string, most = 4_096) => ({
  schema: z.string().min(1).max(most).optional(),
  must: `1 to ${most} characters long`,
  example,
})

/** Printable characters without a blank, as they stand in a header. */
export const token = (example: string, { least = 1, most = 1_000 } = {}) => ({
  schema: z
    .string()
    .min(least)
    .max(most)
    .regex(/^[!-~]+$/)
    .optional(),
  must: `${least} to ${most} printable characters without a blank`,
  example,
  isSecret: true as const,
})

export interface HttpRules {
  /** Plain http is refused, except for an address on this machine: secrets travel there. */
  isEncrypted?: true
  /** The address is one that others ask, so it is none that only says where to listen. */
  isAsked?: true
}

/** What a text must be to serve as an address, or null when it does. */
function httpTrouble(text: string, { isEncrypted, isAsked }: HttpRules): string | null {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return 'an address that begins with http:// or https://'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') return 'an address without a name or password before its host'
  if (text.includes('?') || text.includes('#')) return 'an address without anything behind "?" or "#"'
  if (isAsked === true && /^(0\.0\.0\.0|\[::\])$/.test(url.hostname))
    return 'an address that others can ask; 0.0.0.0 and [::] only say where to listen'
  if (isEncrypted === true && url.protocol === 'http:' && !isOnThisMachine(url))
    return 'an address that begins with https://, unless it is on this machine'
  return null
}

export function httpAddress(example: string, rules: HttpRules = {}) {
  const schema = z.string().superRefine((text, context) => {
    const trouble = httpTrouble(text, rules)
    if (trouble !== null) context.addIssue({ code: 'custom', message: trouble })
  })
  return { schema, must: 'an address that begins with http:// or https://', example }
}
