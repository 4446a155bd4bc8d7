import { z } from 'zod'
import { references, type Reference } from './references.ts'

// What a schema accepts, in words for people that follow `It takes`: `a whole number from 1 to 100`. A pattern has words where its message
// begins with `must be`.

/** The form of a value that is given as text. Of a list, that of one item. */
export function acceptedForm(schema: z.ZodType): string {
  const inner = innermost(schema)
  const reference = references.get(inner)
  if (reference !== undefined) return reference.takes
  if (inner instanceof z.ZodEnum) return `one of ${inner.options.join(', ')}`
  if (inner instanceof z.ZodLiteral) return [...inner.values].join(', ')
  if (inner instanceof z.ZodBoolean) return 'true or false'
  if (inner instanceof z.ZodNumber) return formOfNumber(inner)
  if (inner instanceof z.ZodString) return wordsOfPattern(inner) ?? formOfText(inner)
  if (inner instanceof z.ZodUnion) return formOfUnion(inner)
  return inner instanceof z.ZodObject || inner instanceof z.ZodRecord ? 'a JSON object' : 'JSON'
}

/** What the value names, or null. */
export const referenceAt = (schema: z.ZodType): Reference | null => {
  const inner = innermost(schema)
  const own = references.get(inner)
  if (own !== undefined || !(inner instanceof z.ZodUnion)) return own ?? null
  return inner.options.map((option) => referenceAt(option as z.ZodType)).find((found) => found !== null) ?? null
}

/** Looks through everything around the schema of one value: optional, null, defaults, transforms, lists. */
function innermost(schema: z.ZodType): z.ZodType {
  let at = schema
  for (;;) {
    if (references.has(at)) return at
    if (at instanceof z.ZodOptional || at instanceof z.ZodNullable || at instanceof z.ZodDefault)
      at = at.def.innerType as z.ZodType
    else if (at instanceof z.ZodPipe) at = (at.def.out instanceof z.ZodTransform ? at.def.in : at.def.out) as z.ZodType
    else if (at instanceof z.ZodArray) at = at.element as z.ZodType
    else return at
  }
}

function formOfNumber({ minValue, maxValue, isInt }: z.ZodNumber): string {
  const kind = isInt ? 'a whole number' : 'a number'
  const [from, to] = [minValue, maxValue].map((bound) =>
    bound === null || Math.abs(bound) >= Number.MAX_SAFE_INTEGER ? null : bound.toLocaleString('en'),
  )
  if (from == null) return to == null ? kind : `${kind} up to ${to}`
  return to == null ? `${kind} from ${from} on` : `${kind} from ${from} to ${to}`
}

function formOfText({ minLength, maxLength }: z.ZodString): string {
  const [least, most] = [minLength, maxLength].map((bound) => bound?.toLocaleString('en') ?? null)
  if (most == null) return least == null || least === '0' ? 'text' : `text of at least ${least} characters`
  return least == null || least === '0'
    ? `text of at most ${most} characters`
    : `text of ${least} to ${most} characters`
}

/** A text that no pattern of the contract takes. */
const fitsNothing = '\u0001 /\\'

function wordsOfPattern(schema: z.ZodString): string | null {
  const issues = schema.safeParse(fitsNothing).error?.issues ?? []
  const said = issues.find((issue) => issue.code === 'invalid_format')?.message
  return said?.startsWith('must be ') === true ? said.slice('must be '.length) : null
}

/** Where a text is one of the kinds, an object is another spelling of the same, which no command line has. */
function formOfUnion(union: z.ZodUnion): string {
  const options = union.options as z.ZodType[]
  const plain = options.filter((option) => !(innermost(option) instanceof z.ZodObject))
  return [...new Set((plain.length > 0 ? plain : options).map(acceptedForm))].join(', or ')
}
