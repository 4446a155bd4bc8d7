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
export const flag = z.union([z.number(), z.string(), z.boolean()]).transform((value) => Number(value) === 1)

/** JSON kept as text. A row that does not fit its schema is a defect of ours, so it throws. */
export function json<T extends z.ZodType>(schema: T) {
  return z.string().transform((value, context): z.infer<T> => {
    const parsed = schema.safeParse(JSON.parse(value))
    if (parsed.success) return parsed.data
    context.addIssue({ code: 'custom', message: parsed.error.message })
    return z.NEVER
  })
}
export function nullableJson<T extends z.ZodType>(schema: T) {
  return z
    .string()
    .nullable()
    .transform((value, context): z.infer<T> | null => {
      if (value === null) return null
      const parsed = schema.safeParse(JSON.parse(value))
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: parsed.error.message })
      return z.NEVER
    })
}
export const toJson = (value: unknown): string => JSON.stringify(value)
export const toNullableJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
export const toFlag = (value: boolean): number => (value ? 1 : 0)
