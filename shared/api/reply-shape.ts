import { z } from 'zod'
import type { AnyRoute } from './route.ts'

// What a route's reply is, for those who show it: which list it has, and of which record.

/** The keys under which replies hold their list. */
const listKeys = ['data', 'devices', 'sources'] as const

export interface ReplyShape {
  /** The key of the list; null: the reply is one record. */
  list: string | null
  /** The name of the record's schema, or the id of the route where it has none. */
  look: string
  record: z.ZodType
}

/** Null where the reply has no body. */
export function replyShapeOf(route: AnyRoute): ReplyShape | null {
  const reply = plain(route.reply)
  if (reply instanceof z.ZodVoid) return null
  const page = reply instanceof z.ZodUnion ? plain(reply.options[0] as z.ZodType) : reply
  if (page instanceof z.ZodObject) {
    const shape = page.shape as Record<string, z.ZodType>
    for (const key of listKeys) {
      const list = shape[key] === undefined ? null : plain(shape[key])
      if (!(list instanceof z.ZodArray)) continue
      const record = plain(list.element as z.ZodType)
      return { list: key, look: record.meta()?.id ?? route.id, record }
    }
  }
  return { list: null, look: route.reply.meta()?.id ?? route.id, record: route.reply }
}

/** The names of the record's fields, in the order of its schema. */
export function fieldNamesOf(schema: z.ZodType): string[] {
  return [...new Set(objectsOf(schema).flatMap(({ shape }) => Object.keys(shape as object)))]
}

/** Tells whether a dotted path leads to a field. It goes through lists; whatever is below a field of any kind is there. */
export function hasPath(schema: z.ZodType, path: string): boolean {
  if (path === '') return true
  const inner = plain(schema)
  if (inner instanceof z.ZodArray) return hasPath(inner.element as z.ZodType, path)
  if (inner instanceof z.ZodUnion) return inner.options.some((option) => hasPath(option as z.ZodType, path))
  // Fields that anybody names hold anything.
  if (inner instanceof z.ZodRecord) return inner.valueType instanceof z.ZodUnknown
  if (!(inner instanceof z.ZodObject)) return false
  const [key = '', ...rest] = path.split('.')
  const next = (inner.shape as Record<string, z.ZodType>)[key]
  return next !== undefined && (rest.length === 0 || hasPath(next, rest.join('.')))
}

function objectsOf(schema: z.ZodType): z.ZodObject[] {
  const inner = plain(schema)
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((option) => objectsOf(option as z.ZodType))
  return inner instanceof z.ZodObject ? [inner] : []
}

/** The schema without what makes it optional, nullable or defaulted. */
function plain(schema: z.ZodType): z.ZodType {
  let inner = schema
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable || inner instanceof z.ZodDefault)
    inner = inner.def.innerType as z.ZodType
  return inner
}
