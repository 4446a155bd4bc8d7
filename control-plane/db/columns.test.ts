import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  flag,
  int,
  json,
  nullableInt,
  nullableJson,
  nullableText,
  nullableTime,
  text,
  time,
  rowReader,
} from './columns.ts'

const columns = {
  text,
  nullable_text: nullableText,
  int,
  time,
  nullable_int: nullableInt,
  nullable_time: nullableTime,
  flag,
  json: json(z.object({ a: z.number().default(1) })),
  nullable_json: nullableJson(z.array(z.string())),
  kind: z.enum(['a', 'b']),
  nullable_kind: z.enum(['a', 'b']).nullable(),
  number: z.number(),
  nullable_number: z.number().nullable(),
  short: z.string().max(3),
  small: z.number().int().max(9),
  uuid: z.uuid().nullable(),
  trimmed: z.string().trim(),
}
const values: unknown[] = [
  '',
  'a',
  'b',
  'c',
  ' a ',
  '1',
  '0',
  'x'.repeat(9),
  '{}',
  '{"a":2}',
  '["x"]',
  '[1]',
  'null',
  '{',
  0,
  1,
  2,
  -1,
  10,
  1.5,
  2 ** 53,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  null,
  undefined,
  true,
  false,
  5n,
  Buffer.from('a'),
  new Date(0),
  {},
  '01890000-0000-7000-8000-000000000000',
]

function outcomeOf(read: () => unknown) {
  try {
    return { read: read() }
  } catch (error) {
    return { refused: error instanceof z.ZodError ? error.issues : String(error) }
  }
}

test('each kind of column is read as its schema reads it, whatever is in it', () => {
  for (const [name, column] of Object.entries(columns)) {
    for (const value of values) {
      const object = z.object({ id: text, [name]: column })
      const loose = z.looseObject({ id: text, [name]: column })
      const schemas: z.ZodType[] = [
        object,
        object.transform((row) => ({ of: row.id, value: row[name] })),
        loose,
        loose.transform(({ id, ...others }) => ({ of: id, others })),
      ]
      for (const [at, schema] of schemas.entries()) {
        const row = () => ({ id: 'x', [name]: value, ...(at >= 2 && { more: 1 }) })
        const [ours, theirs] = [outcomeOf(() => rowReader(schema)(row())), outcomeOf(() => schema.parse(row()))]
        expect(ours, `${name}: ${String(value)}`).toEqual(theirs)
      }
    }
  }
})

test('a schema that is more than columns and a function of them is left to itself', () => {
  const strict = z.strictObject({ id: text })
  expect(() => rowReader(strict)({ id: 'x', more: 1 })).toThrow('more')
  const refined = z.object({ id: text }).transform((row, context) => {
    context.addIssue('no')
    return row
  })
  expect(() => rowReader(refined)({ id: 'x' })).toThrow('no')
  const twice = z
    .object({ id: text })
    .transform((row) => row.id)
    .transform((id) => id.length)
  expect(rowReader(twice)({ id: 'xyz' })).toBe(3)
  const checked = z.object({ id: text, rank: int }).refine((row) => row.rank > 0, 'rank')
  expect(() => rowReader(checked)({ id: 'x', rank: 0 })).toThrow('rank')
})

test('the insides of zod by which plain columns are known are where they were', () => {
  const why = 'zod has changed: rows are read by their whole schema, at ten times the cost (row-reader.ts)'
  const [check] = z.number().int().def.checks ?? []
  expect(check, why).toMatchObject({ _zod: { def: { format: 'safeint' } } })
  expect([z.string().def.type, z.number().def.type], why).toEqual(['string', 'number'])
  expect([z.object({}).def.catchall, z.looseObject({}).def.catchall instanceof z.ZodUnknown], why).toEqual([
    undefined,
    true,
  ])
  const piped = z.object({ id: text }).transform(({ id }) => id)
  expect([piped.def.in instanceof z.ZodObject, piped.def.out instanceof z.ZodTransform], why).toEqual([true, true])
  // A row whose values cannot be read twice: a plain column is looked at and not given to its schema.
  const seen: unknown[] = []
  const schema = z.object({ id: z.int(), name: z.string() })
  schema.parse = (row) => seen.push(row) as never
  expect(rowReader(schema)({ id: 1, name: 'a' }), why).toEqual({ id: 1, name: 'a' })
  expect(seen, why).toEqual([])
})
