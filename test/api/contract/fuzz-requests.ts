import fc from 'fast-check'
import { inPool } from '../facts/kit/recipe.ts'
import { endingRoutes, known, namedValues, unknownIds } from './collected.ts'
import { filled, poolNameOf, type Pool } from './fuzz-pool.ts'
import { routeIdOf, type OpenApiDocument, type Operation, type Parameter } from './openapi-document.ts'
import { fitting, junk, nearly, type ValueSource } from './schema-values.ts'

// Requests drawn from the OpenAPI document: such that fit, that nearly fit, and junk. Things stand in them by their names.

export interface Target {
  method: string
  path: string
  operation: Operation
}
export const labelOf = ({ method, path }: Target) => `${method} ${path}`
/** Would leave the rest of the test without a workspace that works, or with a person who is no member. */
const isHarmful = ({ operation }: Target) => endingRoutes[routeIdOf(operation)] !== undefined

const callers = ['owner', 'member', 'worker', 'run', 'nobody', 'stranger', 'junk'] as const
export type Caller = (typeof callers)[number]

export interface Sent {
  /** Method and path. */
  target: string
  params: Record<string, string>
  query: unknown
  body: unknown
  raw: string | null
  caller: Caller
  headers: Record<string, string>
}

function parameterOf(target: Target, { name, schema }: Parameter, source: ValueSource): fc.Arbitrary<string> {
  const thing = poolNameOf(target.path, name)
  const there = isHarmful(target) ? [] : [{ weight: 6, arbitrary: fc.constant(inPool(thing)) }]
  const others = fc.oneof(
    fc.constant(unknownIds[thing] ?? 'x'),
    known,
    fitting(source, schema),
    fc.string({ maxLength: 20 }),
    fc.constantFrom('%00', 'a b', '\u0000', '...', 'x'.repeat(3000)),
  )
  return fc.oneof(...there, { weight: 2, arbitrary: others }).map(String)
}

function requestTo(target: Target, source: ValueSource): fc.Arbitrary<Sent> {
  const { operation } = target
  const of = (where: Parameter['in']) => (operation.parameters ?? []).filter((each) => each.in === where)
  const params = fc.record(Object.fromEntries(of('path').map((each) => [each.name, parameterOf(target, each, source)])))
  const asked = of('query')
  const names = Object.fromEntries(asked.map(({ name, schema }) => [name, schema]))
  const query = asked.length === 0 ? fc.constant({}) : valueFor(source, { type: 'object', properties: names })
  const needsKey = of('header').some(({ name, required }) => name === 'Idempotency-Key' && required === true)
  const schema = operation.requestBody?.content?.['application/json']?.schema
  const body = schema === undefined ? fc.constant(undefined) : valueFor(source, schema)
  return fc.record({
    target: fc.constant(labelOf(target)),
    params,
    query: fc.oneof(
      { weight: 1, arbitrary: fc.constant({}) },
      { weight: asked.length === 0 ? 1 : 3, arbitrary: query },
    ),
    body,
    raw: schema === undefined ? fc.constant(null) : maybeNotJson,
    caller: fc.oneof(
      { weight: 12, arbitrary: fc.constant<Caller>('owner') },
      { weight: 5, arbitrary: fc.constantFrom(...callers) },
    ),
    headers: fc.oneof(
      { weight: 6, arbitrary: needsKey ? newKey : fc.constant({}) },
      { weight: 1, arbitrary: oddHeaders },
    ),
  })
}

const maybeNotJson = fc.oneof(
  { weight: 30, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.string({ maxLength: 50 }) },
)
const valueFor = (source: ValueSource, schema: Parameter['schema']): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 6, arbitrary: fitting(source, schema) },
    { weight: 3, arbitrary: nearly(source, schema) },
    { weight: 1, arbitrary: junk },
  )

const newKey = fc.uuid().map((key) => ({ 'idempotency-key': key }))
const oddHeaders: fc.Arbitrary<Record<string, string>> = fc.oneof(
  newKey,
  fc.constantFrom<Record<string, string>>(
    { 'idempotency-key': 'the-same-for-all' },
    { 'idempotency-key': 'with a space' },
    { 'svc-version': '2026-03' },
    { 'svc-version': 'next' },
    { 'svc-workspace-id': '00000000-0000-4000-8000-00000000000a' },
    { 'svc-workspace-id': 'nonsense' },
    { 'content-type': 'text/plain' },
    { accept: 'text/html, application/json;q=0.5' },
  ),
)

export function addressOf({ params, query }: Sent, { path: template }: Target, pool: Pool): string {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = filled(params[name] ?? '', { ...unknownIds, ...pool })
    const segment = encodeURIComponent(value.toWellFormed())
    // An empty segment or dots would name another path.
    return /^\.{0,2}$/.test(segment) ? '%20' : segment
  })
  const asked = filled(query, pool)
  if (typeof asked !== 'object' || asked === null) return path
  const pairs = Object.entries(asked).map(([name, value]) => {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(text.toWellFormed())}`
  })
  const address = pairs.length === 0 ? path : `${path}?${pairs.join('&')}`
  // Longer ones are no requests any more (unreadable.test.ts).
  return address.slice(0, 8_000).replace(/%.?$/, '')
}

/** All operations but those that answer with a stream only: each request here is over at once. */
export function targetsOf({ paths }: OpenApiDocument): Target[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Target => ({ method, path, operation })),
  )
  return all.filter(({ operation }) => {
    const kinds = Object.keys(operation.responses['200']?.content ?? {})
    return !kinds.includes('text/event-stream') || kinds.includes('application/json')
  })
}

export function anyRequest(document: OpenApiDocument): fc.Arbitrary<Sent> {
  const source: ValueSource = { document, known, named: namedValues, matching: new Map() }
  return fc.oneof(...targetsOf(document).map((target) => requestTo(target, source)))
}
