import type { z } from 'zod'

/**
 * Says what is wrong with a field, in words that follow its name: zod's own name schemas and types. It is given to a parse, so that a
 * schema which says it better in a message of its own keeps that.
 */
export const inWords = { error: issueText }

type Issue = z.core.$ZodRawIssue

export function issueText(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is missing' : `must be ${kindOf(issue.expected)}, not ${kindOfValue(issue)}`
    case 'too_small':
      return boundOf(issue, issue.minimum, ['at least', 'more than'])
    case 'too_big':
      return boundOf(issue, issue.maximum, ['at most', 'less than'])
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_value':
      return issue.input === undefined ? 'is missing' : `must be ${choiceOf(issue.values)}`
    case 'invalid_format':
      return formOf(issue)
    case 'invalid_key':
      return `is no name that may stand here: it ${issue.issues[0]?.message ?? 'does not fit'}`
    case 'unrecognized_keys':
      return 'has a key that is unknown'
    case 'invalid_union':
      return issue.input === undefined ? 'is missing' : unionOf(issue)
    default:
      return 'is not valid'
  }
}

const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}
const kindOf = (expected: string): string => kinds[expected] ?? 'of another kind'

function kindOfValue({ input, expected }: Issue & { expected?: string }): string {
  if (Array.isArray(input)) return 'a list'
  if (expected === 'int' && typeof input === 'number') return 'a fraction'
  if (typeof input === 'boolean') return String(input)
  return input === null ? 'null' : kindOf(typeof input)
}

type Bounded = Issue & { origin: string; inclusive?: boolean; exact?: boolean }
const units: Readonly<Record<string, readonly [string, string]>> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
}

function boundOf(issue: Bounded, bound: number | bigint, [within, beyond]: readonly [string, string]): string {
  const unit = units[issue.origin]
  const how = issue.exact === true ? 'exactly' : issue.inclusive === false ? beyond : within
  if (unit === undefined) return `must be ${how} ${bound}`
  if (issue.code === 'too_small' && bound === 1 && issue.exact !== true) return 'must not be empty'
  return `must have ${how} ${bound} ${unit[bound === 1 ? 0 : 1]}`
}

/** A few of them; all are told as `allowedValues`. */
function choiceOf(values: readonly unknown[]): string {
  const shown = values.slice(0, 20).map(String)
  if (shown.length === 1) return shown[0]!
  return `one of ${shown.join(', ')}${values.length > shown.length ? ' and others' : ''}`
}

const forms: Readonly<Record<string, string>> = {
  uuid: 'a UUID',
  url: 'a URL',
  email: 'an email address',
  datetime: 'a time such as 2026-01-31T12:00:00Z',
  date: 'a date such as 2026-01-31',
  base64: 'base64',
}

function formOf(issue: Issue & { format: string; pattern?: string }): string {
  const form = forms[issue.format]
  if (form !== undefined) return `must be ${form}`
  const { pattern } = issue
  return issue.format === 'regex' && pattern !== undefined && pattern.length <= 100
    ? `must match ${pattern}`
    : 'does not have the form that it must have'
}

/** The kinds it may have, when it is of none of them. */
function unionOf(issue: Issue & { errors?: readonly (readonly z.core.$ZodIssue[])[] }): string {
  const expected = (issue.errors ?? []).map(([first]) =>
    first?.code === 'invalid_type' && first.path.length === 0 ? kindOf(first.expected) : null,
  )
  const isKnown = expected.length > 0 && expected.every((kind) => kind !== null)
  return isKnown ? `must be ${[...new Set(expected)].join(' or ')}` : 'has none of the forms that it may have'
}
