import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { errorEnvelope, plainErrorEnvelope } from '../../../shared/api/errors.ts'
import type { Log } from '../../../control-plane/log.ts'
import { TestServer } from '../../kit/server.ts'
import { silentLog } from '../../../control-plane/log.ts'
import { fill, isUnavailable, reaches, unknownIds, type Reach } from './every-route.ts'

/**
 * Thousands of requests made from the routes' own schemas: values that fit, values that nearly fit, and junk. Never a
 * 500, always an envelope, and (the server checks it, being told to) every reply fits its schema. FUZZ_SEED repeats one.
 */
let server: TestServer
const failures: unknown[] = []
const log: Log = { ...silentLog, error: (fields, message) => void failures.push([message, fields]), child: () => log }

beforeAll(async () => {
  server = await TestServer.start({ log })
})
afterAll(() => server.stop())

type Schema = { [key: string]: unknown }

const junk = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e21,
    '',
    ' ',
    '\u0000',
    '\ud800',
    'none',
    [],
    {},
    [[]],
    '💥',
    "' or 1=1 --",
  ),
  fc.string({ maxLength: 300 }),
  fc.jsonValue({ maxDepth: 3 }),
)
const ids = fc.constantFrom(
  'me',
  'current',
  '@nobody',
  ...Object.values(unknownIds),
  'dvc_0000000000000000',
  '%00',
  '..',
  'a b',
)

/** Values for a JSON schema; one in eight is junk. */
function valueFor(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 7, arbitrary: fitting(schema) }, { weight: 1, arbitrary: junk })
}

function fitting(schema: Schema): fc.Arbitrary<unknown> {
  const options = (schema['anyOf'] ?? schema['oneOf']) as Schema[] | undefined
  if (options) return fc.oneof(...options.map(valueFor))
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  if ('const' in schema) return fc.constant(schema['const'])
  switch (schema['type']) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Record<string, Schema>
      const record = Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, valueFor(each)]))
      const required = (schema['required'] ?? []) as string[]
      return fc.record(record, { requiredKeys: required.filter((key) => key in record) })
    }
    case 'array':
      return fc.array(valueFor((schema['items'] ?? {}) as Schema), { maxLength: 4 })
    case 'string':
      return fc.oneof(fc.string({ maxLength: 40 }), ids)
    case 'integer':
    case 'number':
      return fc.oneof(fc.integer({ min: -2, max: 1_100 }), fc.constantFrom(0, 1, 25, 100, 101, 2 ** 53))
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return junk
  }
}

const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })

interface Sent {
  reach: Reach
  path: string
  body: unknown
}

function requestTo(reach: Reach): fc.Arbitrary<Sent> {
  const names = [...reach.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
  const params = fc.record(
    Object.fromEntries(
      names.map((name) => [name, fc.oneof(fc.constant(unknownIds[name] ?? ''), ids, fc.string({ maxLength: 20 }))]),
    ),
  )
  const query = fc.oneof(fc.constant({}), valueFor(jsonSchema(reach.route.query)))
  const hasBody = reach.route.method !== 'GET' && reach.route.method !== 'DELETE'
  const body = hasBody ? valueFor(jsonSchema(reach.route.body)) : fc.constant(undefined)
  return fc.tuple(params, query, body).map(([values, asked, content]) => {
    const encoded = Object.fromEntries(
      Object.entries(values as Record<string, string>).map(([name, value]) => [
        name,
        encodeURIComponent(wellFormed(value)) || '%20',
      ]),
    )
    return { reach, path: fill(reach.path, encoded) + queryText(asked), body: content }
  })
}

const wellFormed = (text: string) => text.toWellFormed()
function queryText(query: unknown): string {
  if (typeof query !== 'object' || query === null) return ''
  const pairs = Object.entries(query).map(([name, value]) => {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return `${encodeURIComponent(wellFormed(name))}=${encodeURIComponent(wellFormed(text))}`
  })
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

// Streams and the start of real work are tested elsewhere; here each request must be over at once.
const candidates = reaches.filter(({ route }) => route.stream === null)
const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

it(`answers anything with what the contract says (seed ${seed})`, async () => {
  const anyRequest = fc.oneof(...candidates.map(requestTo))
  await fc.assert(
    fc.asyncProperty(anyRequest, async ({ reach, path, body }) => {
      const { method, base } = reach.route
      const reply = await server.call(path, { method, base, ...(body === undefined ? {} : { body }) })
      const isKnown = reply.status === 501 ? isUnavailable(reach.route) : reply.status < 500
      expect([isKnown, failures]).toEqual([true, []])
      if (reply.status < 400) return
      const shape =
        typeof (reply.body as { error?: unknown }).error === 'string'
          ? plainErrorEnvelope
          : z.object({ error: errorEnvelope })
      const parsed = shape.safeParse(reply.body)
      const alternative = errorEnvelope.safeParse(reply.body)
      expect(parsed.success || alternative.success).toBe(true)
    }),
    { seed, numRuns: 3_000 },
  )
}, 60_000)
