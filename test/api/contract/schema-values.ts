import fc from 'fast-check'
import { resolved, type JsonSchema, type OpenApiDocument } from './openapi-document.ts'

// Values made from the schemas of the OpenAPI document: such that fit, such that nearly fit, and junk.

/** Any code unit or character. The unit "binary" of fast-check is the same, and takes a second for a table of all of them. */
const anyCharacter = fc
  .oneof(fc.nat(0xff), fc.nat(0xffff), fc.nat(0x10ffff))
  .map((point) => String.fromCodePoint(point))

export const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 1e21, 2 ** 53, [], {}, [[]]),
  fc.constantFrom('', ' ', '\u0000', '\ud800', 'none', '💥', "' or 1=1 --", 'x'.repeat(5000)),
  fc.string({ maxLength: 300, unit: anyCharacter }),
  fc.jsonValue({ maxDepth: 3 }),
)

export interface ValueSource {
  document: OpenApiDocument
  /** Values for texts that are likely to name something: ids, references, slugs. */
  known: fc.Arbitrary<string>
  /** Values for keys of objects that schemas alone would seldom meet. */
  named: Readonly<Record<string, fc.Arbitrary<unknown>>>
  /** Texts by the pattern that they match: few patterns stand in many schemas, and making the texts of one costs much. */
  matching: Map<string, fc.Arbitrary<string>>
}

export function fitting(source: ValueSource, given: JsonSchema): fc.Arbitrary<unknown> {
  const schema = resolved(source.document, given)
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) return fc.oneof(...options.map((option) => fitting(source, option)))
  if (schema.allOf !== undefined) {
    return fc.tuple(...schema.allOf.map((part) => fitting(source, part))).map((parts) => Object.assign({}, ...parts))
  }
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if ('const' in schema) return fc.constant(schema.const)
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object':
      return object(source, schema)
    case 'array':
      return fc.array(fitting(source, schema.items ?? {}), { maxLength: 4 })
    case 'string':
      return text(source, schema)
    case 'integer':
      return fc.integer({ min: limit(schema.minimum, -1000), max: limit(schema.maximum, 1_000_000) })
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const limit = (given: number | undefined, otherwise: number) =>
  given === undefined || Math.abs(given) > 2 ** 31 ? otherwise : given

/** Few of the keys that may be left out: with all of them one would nearly always be refused. */
function object(source: ValueSource, { properties = {}, required = [] }: JsonSchema): fc.Arbitrary<unknown> {
  const values = Object.fromEntries(
    Object.entries(properties).map(([name, each]) => {
      const own = source.named[name]
      const fit = fitting(source, each)
      return [name, own === undefined ? fit : fc.oneof({ weight: 5, arbitrary: own }, { weight: 1, arbitrary: fit })]
    }),
  )
  const needed = required.filter((name) => name in values)
  const optional = Object.keys(values).filter((name) => !needed.includes(name))
  const all = fc.record(values, { requiredKeys: needed })
  if (optional.length < 3) return all
  const few = fc.shuffledSubarray(optional, { maxLength: 3 }).chain((chosen) => {
    const keys = [...needed, ...chosen]
    return fc.record(Object.fromEntries(keys.map((name) => [name, values[name]!])))
  })
  return fc.oneof({ weight: 5, arbitrary: few }, { weight: 1, arbitrary: all })
}

function text({ known, matching: made }: ValueSource, schema: JsonSchema): fc.Arbitrary<string> {
  const { minLength = 0, maxLength = 40, pattern, format } = schema
  if (format === 'uuid') return fc.oneof(known, fc.uuid())
  if (format === 'date-time')
    return fc.date({ noInvalidDate: true, min: new Date(0) }).map((date) => date.toISOString())
  if (pattern !== undefined) {
    const matching = made.get(pattern) ?? fc.stringMatching(new RegExp(pattern, 'u'), { size: 'small' })
    made.set(pattern, matching)
    return typeof schema.example !== 'string' ? matching : fc.oneof(matching, fc.constant(schema.example), known)
  }
  const words = fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 60)) })
  return fc.oneof({ weight: 2, arbitrary: words }, { weight: 1, arbitrary: known })
}

/** A fitting value with one thing wrong somewhere in it: a key too many or too few, another type, past a limit. */
export function nearly(source: ValueSource, schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc.tuple(fitting(source, schema), fc.nat(), junk, fc.nat(3)).map(([value, at, wrong, how]) => {
    const copy: unknown = structuredClone(value)
    return spoil(copy, { at, wrong, how })
  })
}

interface Spoiling {
  at: number
  wrong: unknown
  how: number
}
function spoil(value: unknown, { at, wrong, how }: Spoiling): unknown {
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'string' && how === 0) return value.repeat(3000).slice(0, 200_000)
    if (typeof value === 'number' && how === 0) return -value * 1e9 - 1
    return wrong
  }
  const keys = Object.keys(value)
  const key = keys[at % Math.max(1, keys.length)]
  const target = value as Record<string, unknown>
  if (key === undefined || how === 1) target[`extra${at % 10}`] = wrong
  else if (how === 2) delete target[key]
  else target[key] = spoil(target[key], { at: Math.floor(at / Math.max(1, keys.length)), wrong, how })
  return value
}
