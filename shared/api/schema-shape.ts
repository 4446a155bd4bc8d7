import { z } from 'zod'

/** The part of a schema that the router and the command line need to read a value from text. */
export interface ValueShape {
  kind: 'string' | 'number' | 'boolean' | 'array' | 'object' | 'json'
  optional: boolean
  nullable: boolean
  /** `undefined` when there is none. */
  default: unknown
  /** The values of an enum, or of an array's items. */
  choices: readonly string[] | null
  /** The largest number; null: there is none. */
  max: number | null
  /** The items of an array. */
  item: ValueShape | null
  description: string | null
}

export function shapeOf(schema: z.ZodType): ValueShape {
  const shape: ValueShape = {
    kind: 'json',
    optional: false,
    nullable: false,
    default: undefined,
    choices: null,
    max: null,
    item: null,
    description: null,
  }
  let inner: z.ZodType = schema
  for (;;) {
    shape.description ??= inner.description ?? null
    if (inner instanceof z.ZodOptional) shape.optional = true
    else if (inner instanceof z.ZodNullable) shape.nullable = true
    else if (inner instanceof z.ZodDefault) shape.default = inner.def.defaultValue
    else if (!isTransformed(inner)) break
    inner = (isTransformed(inner) ? inner.def.in : inner.def.innerType) as z.ZodType
  }
  if (inner instanceof z.ZodString) shape.kind = 'string'
  else if (inner instanceof z.ZodNumber) {
    shape.kind = 'number'
    shape.max = inner.maxValue
  } else if (inner instanceof z.ZodBoolean) shape.kind = 'boolean'
  else if (inner instanceof z.ZodObject) shape.kind = 'object'
  else if (inner instanceof z.ZodEnum) {
    shape.kind = 'string'
    shape.choices = inner.options.map(String)
  } else if (inner instanceof z.ZodArray) {
    shape.kind = 'array'
    shape.item = shapeOf(inner.element as z.ZodType)
    shape.choices = shape.item.choices
  }
  return shape
}

/** Tells whether a schema transforms its input. The text of such a field is read as what goes in. */
const isTransformed = (schema: z.ZodType): schema is z.ZodPipe<z.ZodType, z.ZodTransform> =>
  schema instanceof z.ZodPipe && schema.def.out instanceof z.ZodTransform

/** The schema at a path below an object schema, or null. Looks through optional, nullable and default. */
export function schemaAt(schema: z.ZodType, path: readonly string[]): z.ZodType | null {
  let at: z.ZodType = schema
  for (const key of path) {
    while (at instanceof z.ZodOptional || at instanceof z.ZodNullable || at instanceof z.ZodDefault) {
      at = at.def.innerType as z.ZodType
    }
    if (!(at instanceof z.ZodObject)) return null
    const next = (at.shape as Record<string, z.ZodType>)[key]
    if (next === undefined) return null
    at = next
  }
  return at
}
