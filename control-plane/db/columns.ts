import { z } from 'zod'

/** Column types as both databases give them back. */
export const text = z.string()
export const nullableText = z.string().nullable()
export const int = z.coerce.number().int()
export const nullableInt = z
  .union([z.number(), z.string()])
  .nullable()
  .transform((value) => (value === null ? null : Number(value)))
/** Milliseconds UTC. */
export const time = int
export const nullableTime = nullableInt

/** The stored form of a column's value, where it differs from the value itself. */
const encoders = new WeakMap<z.ZodType, (value: unknown) => unknown>()
const asItIs = (value: unknown): unknown => value
export const encoderOf = (column: z.ZodType): ((value: unknown) => unknown) => encoders.get(column) ?? asItIs

function keptAs<T extends z.ZodType>(column: T, encode: (value: never) => unknown): T {
  encoders.set(column, encode as (value: unknown) => unknown)
  return column
}

export const flag = keptAs(
  z.union([z.number(), z.string(), z.boolean()]).transform((value) => Number(value) === 1),
  (value: boolean) => (value ? 1 : 0),
)
export const nullableFlag = keptAs(
  z
    .union([z.number(), z.string(), z.boolean()])
    .nullable()
    .transform((value) => (value === null ? null : Number(value) === 1)),
  (value: boolean | null) => (value === null ? null : value ? 1 : 0),
)

/** JSON kept as text. A row that does not fit its schema is a defect of ours, so it throws. */
export function json<T extends z.ZodType>(schema: T) {
  return keptAs(z.string().transform(parsedBy(schema)), toJson)
}
export function nullableJson<T extends z.ZodType>(schema: T) {
  const parse = parsedBy(schema)
  return keptAs(
    z
      .string()
      .nullable()
      .transform((value, context) => (value === null ? null : parse(value, context))),
    (value) => (value === null ? null : toJson(value)),
  )
}
function parsedBy<T extends z.ZodType>(schema: T) {
  return (value: string, context: z.RefinementCtx): z.infer<T> => {
    const parsed = schema.safeParse(JSON.parse(value))
    if (parsed.success) return parsed.data
    context.addIssue({ code: 'custom', message: parsed.error.message })
    return z.NEVER
  }
}
export const toJson = (value: unknown): string => JSON.stringify(value)
