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

/** The type of the column in a list of values that are given. */
export function sqlTypeOf(column: z.ZodType): 'bigint' | 'text' {
  const inner = column instanceof z.ZodNullable ? (column.unwrap() as z.ZodType) : column
  const isNumber = column === nullableInt || column === nullableFlag || inner === flag || inner.def.type === 'number'
  return isNumber ? 'bigint' : 'text'
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

/**
 * Reads rows as their schema does, at a tenth of the cost: most columns are texts and numbers, which need only be looked
 * at. A column of another kind is read by its own schema, and a row that is not as expected by the whole one, which
 * then says what is wrong with it.
 */
export function rowReader<Row>(schema: { parse(row: unknown): Row }): (row: unknown) => Row {
  const object = schema instanceof z.ZodPipe ? schema.def.in : schema
  const reshape = schema instanceof z.ZodPipe ? reshapeOf(schema.def.out) : (row: unknown) => row
  if (!(object instanceof z.ZodObject) || !isOnlyColumns(object) || reshape === null) return (row) => schema.parse(row)
  const columns = Object.entries<z.ZodType>(object.shape)
  const plain = columns.flatMap(([name, column]) => {
    const isPlain = plainValue(column)
    return isPlain === null ? [] : [{ name, isPlain }]
  })
  const others = columns.filter(([, column]) => plainValue(column) === null)
  return (given) => {
    const row = given as Record<string, unknown>
    for (const { name, isPlain } of plain) if (!isPlain(row[name])) return schema.parse(row)
    const values: unknown[] = []
    for (const [name, column] of others) {
      const parsed = column === flag ? flagOf(row[name]) : column.safeParse(row[name])
      if (!parsed.success) return schema.parse(row)
      values.push(parsed.data)
    }
    // The row is the driver's gift to us: it is written over, as a copy would cost more than reading it did.
    others.forEach(([name], index) => (row[name] = values[index]))
    return reshape(row) as Row
  }
}

/** A loose one keeps what else is in the row. */
const isOnlyColumns = ({ def: { catchall, checks = [] } }: z.ZodObject): boolean =>
  (catchall === undefined || catchall instanceof z.ZodUnknown) && checks.length === 0

/** The function that a schema applies to a row it has read; null when the schema does more than that. */
function reshapeOf(out: unknown): ((row: unknown) => unknown) | null {
  if (!(out instanceof z.ZodTransform)) return null
  const { transform } = out.def
  return transform.length > 1 ? null : (row) => transform(row, undefined as never)
}

type Check = (value: unknown) => boolean

/** A check for values that the column's schema returns unchanged; null when it changes them. */
function plainValue(column: z.ZodType): Check | null {
  if (column === nullableInt) return (value) => value === null || Number.isFinite(value)
  if (column instanceof z.ZodNullable) {
    const inner = plainValue(column.unwrap() as z.ZodType)
    return inner && ((value) => value === null || inner(value))
  }
  if (column instanceof z.ZodEnum) {
    const known = new Set<unknown>(column.options)
    return (value) => known.has(value)
  }
  const { type, checks = [], format } = column.def as { type: string; checks?: z.core.$ZodCheck[]; format?: string }
  if (type === 'string' && checks.length === 0 && format === undefined) return (value) => typeof value === 'string'
  if (type === 'number' && checks.every(isInteger)) return checks.length > 0 ? Number.isSafeInteger : Number.isFinite
  return null
}

const isInteger = ({ _zod }: z.core.$ZodCheck): boolean =>
  (_zod.def as { check: string; format?: string }).format === 'safeint'

const flagOf = (value: unknown) =>
  value === 1 || value === 0 ? { success: true, data: value === 1 } : flag.safeParse(value)
