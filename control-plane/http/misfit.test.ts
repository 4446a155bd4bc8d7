import { expect, test } from 'vitest'
import { z } from 'zod'
import { contract } from '../../shared/api/index.ts'
import { inWords } from './misfit.ts'

const said = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value, inWords).error?.issues.map(({ message }) => message)

test.each([
  [z.string(), undefined, 'is missing'],
  [z.string().optional().nonoptional(), undefined, 'is missing'],
  [z.enum(['a', 'b']), undefined, 'is missing'],
  [z.string(), null, 'must be a string, not null'],
  [z.number(), 'x', 'must be a number, not a string'],
  [z.int(), 1.5, 'must be a whole number, not a fraction'],
  [z.boolean(), 1, 'must be true or false, not a number'],
  [z.array(z.string()), {}, 'must be a list, not an object'],
  [z.object({}), [], 'must be an object, not a list'],
  [z.record(z.string(), z.string()), false, 'must be an object, not false'],
  [z.string().min(1), '', 'must not be empty'],
  [z.string().min(2), 'x', 'must have at least 2 characters'],
  [z.string().max(1), 'xx', 'must have at most 1 character'],
  [z.string().length(1), '', 'must have exactly 1 character'],
  [z.array(z.string()).max(2), ['', '', ''], 'must have at most 2 items'],
  [z.number().min(1), 0, 'must be at least 1'],
  [z.number().max(9), 10, 'must be at most 9'],
  [z.number().positive(), 0, 'must be more than 0'],
  [z.number().multipleOf(5), 3, 'must be a multiple of 5'],
  [z.enum(['a', 'b']), 'c', 'must be one of a, b'],
  [z.literal('a'), 'c', 'must be a'],
  [z.uuid(), 'x', 'must be a UUID'],
  [z.url(), 'x', 'must be a URL'],
  [z.string().regex(/^a$/), 'x', 'must match /^a$/'],
  [z.string().regex(/^a$/, 'is no a'), 'x', 'is no a'],
  [z.string().startsWith('a'), 'x', 'does not have the form that it must have'],
  [
    z.record(z.string().max(1), z.string()),
    { xx: '' },
    'is no name that may stand here: it must have at most 1 character',
  ],
  [z.union([z.string(), z.object({})]), 1, 'must be a string or an object'],
  [z.union([z.string(), z.object({ a: z.string() })]), {}, 'has none of the forms that it may have'],
  [z.string().refine(() => false), 'x', 'is not valid'],
])('a misfit is told in plain words (%#)', (schema, value, words) => {
  expect(said(schema, value)).toEqual([words])
})

test('whatever a body lacks or has of another kind, no message names a schema', () => {
  const odd = [undefined, null, 1, 1.5, '', 'x', true, [], {}, [null], { a: 1 }]
  const heard = new Set<string>()
  // A route without a body reads none.
  for (const { body } of contract.filter((route) => route.body.def.type !== 'undefined')) {
    const keys = body instanceof z.ZodObject ? Object.keys(body.shape) : []
    for (const value of odd)
      for (const sent of [value, Object.fromEntries(keys.map((key) => [key, value]))])
        for (const message of said(body, sent) ?? []) heard.add(message)
  }
  expect(heard.size).toBeGreaterThan(20)
  expect([...heard].filter((message) => /^Invalid|^Too |expected|received|of another kind/.test(message))).toEqual([])
})
