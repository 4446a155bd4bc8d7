import type { z } from 'zod'
import type { ErrorCode } from '../../shared/api/error-codes.ts'
import { fail, type FieldError } from '../../shared/api/errors.ts'
import { maxIds } from '../../shared/api/paging.ts'
import type { AnyRoute } from '../../shared/api/route.ts'
import { shapeOf, type ValueShape } from '../../shared/api/schema-shape.ts'
import { nearest } from '../../shared/lib/nearest.ts'
import { isStorable } from '../../shared/lib/storable.ts'
import { inWords } from './misfit.ts'

/** Turns the texts of a request into what the schemas of its route say. It is made once per route. */
export interface Validator {
  params(raw: Readonly<Record<string, string>>): object
  query(search: string): object
  body(value: unknown): unknown
}

const nothing = {}

export function createValidator(route: AnyRoute): Validator {
  const hasParams = Object.keys(route.params.shape).length > 0
  const readQuery = createQueryReader(route)
  return {
    params: (raw) => (hasParams ? readParams(route, raw) : nothing),
    query: readQuery,
    body: (value) => readBody(route, value),
  }
}

function readParams(route: AnyRoute, raw: Readonly<Record<string, string>>): object {
  for (const [param, value] of Object.entries(raw)) if (!isStorable(value)) fail(route.malformedParam, { param })
  const parsed = route.params.safeParse(raw)
  if (parsed.success) return parsed.data
  return fail(route.malformedParam, { param: String(parsed.error.issues[0]?.path[0]) })
}

function readBody(route: AnyRoute, value: unknown): unknown {
  if (route.body.def.type === 'undefined') return undefined
  for (const [key, code] of Object.entries(route.refusedBodyKeys)) {
    if (typeof value === 'object' && value !== null && Object.hasOwn(value, key)) fail(code, { param: key })
  }
  if (route.streamed !== null && isWithout(value, route.streamed.key))
    fail('content_required', { param: route.streamed.key })
  const parsed = route.body.safeParse(value, inWords)
  return parsed.success ? parsed.data : failFields(parsed.error, 'body')
}

const isWithout = (value: unknown, key: string): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  (value as Record<string, unknown>)[key] == null

/** `param` is where the fault is; `whole` when it is nowhere within. */
function failFields(error: z.ZodError, whole: string, param?: string): never {
  const [first] = error.issues
  const fields = error.issues
    .slice(0, 50)
    .flatMap(fieldsOf)
    .map(({ path, message }) => ({ path: path === '' ? (param ?? whole) : path, message }))
  return fail('validation_error', {
    param: param ?? fields[0]?.path ?? whole,
    details: { fields },
    ...(first?.code === 'invalid_value' && { allowedValues: first.values }),
  })
}

function fieldsOf(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), message: 'unknown key' }))
  }
  return [{ path: issue.path.join('.'), message: issue.message }]
}

/**
 * Query keys are read as their schemas want them: numbers, true and false, lists (`name` or `name[]`, repeated or separated
 * by commas). Keys that the route does not have are refused or ignored, as it says.
 */
function createQueryReader(route: AnyRoute): (search: string) => object {
  const shapes = new Map(
    Object.entries(route.query.shape).map(([key, schema]) => [key, shapeOf(schema as z.ZodType)] as const),
  )
  const { refuse, invalid } = route.queryCodes
  const isStrict = route.unknownQuery === 'refused'
  if (shapes.size === 0 && Object.keys(refuse).length === 0 && !isStrict) return () => nothing
  // An empty query means the same each time, and handlers do not write to it.
  const none = route.query.safeParse({})
  if (none.success) Object.freeze(none.data)
  return (search) => {
    if (search === '' && none.success) return none.data
    const raw = search === '' ? {} : collect(search, { shapes, refuse, invalid, isStrict })
    if (raw['ids'] !== undefined) checkIds(raw)
    const parsed = route.query.safeParse(raw, inWords)
    if (parsed.success) return parsed.data
    const key = String(parsed.error.issues[0]?.path[0])
    const code = invalid[key]
    // The parameter as it is called, also when one of its values is at fault.
    if (code === undefined) return failFields(parsed.error, 'query', key)
    const { choices } = shapes.get(key) ?? { choices: null }
    return fail(code, { param: key, ...(choices === null ? {} : { allowedValues: choices }) })
  }
}

interface QueryShape {
  shapes: ReadonlyMap<string, ValueShape>
  refuse: AnyRoute['queryCodes']['refuse']
  invalid: AnyRoute['queryCodes']['invalid']
  isStrict: boolean
}

function collect(search: string, { shapes, refuse, invalid, isStrict }: QueryShape): Record<string, unknown> {
  const values = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(search)) {
    const key = name.endsWith('[]') ? name.slice(0, -2) : name
    if (Object.hasOwn(refuse, key)) fail(refuse[key]!, { param: key })
    if (!shapes.has(key)) {
      if (isStrict) failUnknown(key, [...shapes.keys()])
      continue
    }
    if (!isStorable(value))
      fail('validation_error', { param: key, details: { fields: [{ path: key, message: 'has a NUL' }] } })
    const list = values.get(key)
    if (list === undefined) values.set(key, [value])
    else list.push(value)
  }
  const raw: Record<string, unknown> = {}
  for (const [key, texts] of values) {
    if (isStrict && texts.every((text) => /^[\s,]*$/.test(text))) failEmpty(key, invalid[key])
    raw[key] = fromTexts(texts, shapes.get(key)!)
  }
  return raw
}

/** A filter without a value, as of a variable that is unset, would give nothing or the whole list, whichever its kind. */
function failEmpty(param: string, code: ErrorCode = 'validation_error'): never {
  const message = `The query parameter \`${param}\` is empty: leave it out, or give it a value.`
  return fail(code, { message, param, details: { fields: [{ path: param, message: 'must not be empty' }] } })
}

/** A filter that is misspelt and ignored would give the whole list, or another page than the one that was meant. */
function failUnknown(name: string, known: readonly string[]): never {
  const param = name.slice(0, 100)
  const near = nearest(param, known)
  const hint = near === null ? '' : ` Did you mean \`${near}\`?`
  return fail('validation_error', {
    message: `There is no query parameter \`${param}\` here.${hint}`,
    param,
    details: { fields: [{ path: param, message: 'unknown query parameter' }] },
    allowedValues: known,
  })
}

/** A value that does not read as its kind stays text, which the schema then refuses with its own message. */
function fromTexts(texts: readonly string[], shape: ValueShape): unknown {
  if (shape.kind === 'array') {
    const items = texts.flatMap((text) => text.split(',')).filter((text) => text !== '')
    return items.map((text) => fromText(text, shape.item?.kind))
  }
  return texts.length === 1 ? fromText(texts[0]!, shape.kind) : texts
}

function fromText(text: string, kind: ValueShape['kind'] | undefined): unknown {
  if (kind === 'number' && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text)
  if (kind === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** `include` and `expand` say how an object is shown; any other key filters or pages. */
const presentation = new Set(['ids', 'include', 'expand'])

function checkIds(raw: Record<string, unknown>): void {
  if ((raw['ids'] as unknown[]).length > maxIds) fail('too_many_ids', { param: 'ids' })
  const other = Object.keys(raw).find((key) => !presentation.has(key))
  if (other !== undefined) fail('ids_exclusive', { param: other })
}
