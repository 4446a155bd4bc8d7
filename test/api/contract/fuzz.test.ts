import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { ApiError } from '../../../shared/api/errors.ts'
import { silentLog, type Log } from '../../../control-plane/process/log.ts'
import { inPool } from '../facts/kit/recipe.ts'
import { endingRoutes, known, namedValues, unknownIds } from './collected.ts'
import { filled, isInPool, makePool, poolNameOf, type Pool } from './fuzz-pool.ts'
import { readDocument, routeIdOf, type OpenApiDocument, type Operation, type Parameter } from './openapi-document.ts'
import { fitting, junk, nearly, type ValueSource } from './schema-values.ts'
import { slug, Stage } from './stage.ts'

/**
 * Thousands of requests made from the OpenAPI document that the server gives: such that fit, that nearly fit, and junk, by
 * callers of each kind, about things that are there and things that are not. Never a 500, always the envelope; each answer
 * has a status and a code that the document names for its route, and fits its schema there. FUZZ_SEED repeats a run.
 */
let stage: Stage
let document: OpenApiDocument
const failures: unknown[] = []
/** A refusal with a code, as 502, is judged by the document; what else is logged as an error is a failure. */
const noteFailure: Log['error'] = (fields, message) => {
  const { err } = fields as { err?: unknown }
  if (!(err instanceof ApiError) || err.status === 500) failures.push([message, fields])
}
const log: Log = { ...silentLog, error: noteFailure, child: () => log }

beforeAll(async () => {
  stage = await Stage.start({ log })
  document = await readDocument(stage.server)
})
afterAll(() => stage.stop())

interface Target {
  method: string
  path: string
  operation: Operation
}
const labelOf = ({ method, path }: Target) => `${method} ${path}`
/** Would leave the rest of the test without a workspace that works, or with a person who is no member. */
const isHarmful = ({ operation }: Target) => endingRoutes[routeIdOf(operation)] !== undefined

const callers = ['owner', 'member', 'worker', 'run', 'nobody', 'stranger', 'junk'] as const
type Caller = (typeof callers)[number]

interface Sent {
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

function tokenOf(caller: Caller): string | null {
  const tokens = {
    owner: stage.owner.token,
    member: stage.member.token,
    worker: stage.worker.token,
    run: runToken,
    stranger: strangerToken,
    junk: 'svc_pat_junk',
    nobody: null,
  }
  return tokens[caller]
}
let strangerToken: string | null = null
/** A run that asks ends by it, so this is renewed with the things. */
let runToken: string | null = null

function addressOf({ params, query }: Sent, { path: template }: Target, pool: Pool): string {
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

async function send(sent: Sent, target: Target, pool: Pool) {
  const { body, raw, caller, headers } = sent
  const token = tokenOf(caller)
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(filled(body, pool)))
  const hasBody = target.method !== 'get' && content !== undefined
  const response = await fetch(stage.server.url + addressOf(sent, target, pool), {
    method: target.method.toUpperCase(),
    redirect: 'manual',
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      // A write that can answer a stream does so unless it is told not to.
      accept: 'application/json',
      ...headers,
    },
    ...(hasBody ? { body: content } : {}),
  })
  return { status: response.status, text: await response.text(), requestId: response.headers.get('request-id') }
}

/** All operations but those that answer with a stream only: each request here is over at once. */
function targetsOf({ paths }: OpenApiDocument): Target[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Target => ({ method, path, operation })),
  )
  return all.filter(({ operation }) => {
    const kinds = Object.keys(operation.responses['200']?.content ?? {})
    return !kinds.includes('text/event-stream') || kinds.includes('application/json')
  })
}

/** Checks answers against the document's own schemas. */
function makeJudge() {
  const ajv = new Ajv2020({ strict: false, allErrors: false })
  ajv.addFormat('uuid', /^[0-9a-f-]{36}$/i)
  ajv.addFormat('date-time', (text: string) => !Number.isNaN(Date.parse(text)))
  ajv.addFormat('uri', (text: string) => URL.canParse(text))
  ajv.addSchema(document, 'openapi')
  const compiled = new Map<object, ValidateFunction>()
  return (schema: object, value: unknown): string | null => {
    let validate = compiled.get(schema)
    if (validate === undefined) {
      const text = JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components')
      validate = ajv.compile(JSON.parse(text) as object)
      compiled.set(schema, validate)
    }
    return validate(value) ? null : ajv.errorsText(validate.errors)
  }
}

type Judge = ReturnType<typeof makeJudge>
function troubleWith({ operation }: Target, reply: Awaited<ReturnType<typeof send>>, judge: Judge): string | null {
  const declared = operation.responses[String(reply.status)]
  if (declared === undefined) return `status ${reply.status} is not in the document`
  if (reply.requestId === null) return 'no Request-Id'
  const schema = declared.content?.['application/json']?.schema
  if (schema === undefined) return reply.text === '' ? null : 'a body where there is none'
  let body: unknown
  try {
    body = JSON.parse(reply.text)
  } catch {
    return `not JSON: ${reply.text.slice(0, 200)}`
  }
  const misfit = judge(schema, body)
  if (misfit !== null) return misfit
  const { error } = body as { error?: { code?: string; requestId?: string } | string }
  if (reply.status < 400 || typeof error === 'string') return null
  if (error?.requestId !== reply.requestId) return 'requestId is not that of the header'
  return declared.description.includes(`\`${error.code}\``) ? null : `${error.code} is not in the document`
}

/** The request that failed may be long; its head says what it is. */
function report(details: fc.RunDetails<[Sent]>): void {
  if (!details.failed) return
  const request = JSON.stringify(details.counterexample).slice(0, 3_000)
  throw new Error(`FUZZ_SEED=${details.seed}, request ${details.numRuns}: ${request}`, { cause: details.errorInstance })
}

const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const requests = 5_000
const freshEvery = 200

it(`answers anything as the OpenAPI document says (seed ${seed})`, async () => {
  strangerToken = (await stage.server.addPerson('owner', slug())).token
  const targets = targetsOf(document)
  const source: ValueSource = { document, known, named: namedValues }
  const byLabel = new Map(targets.map((target) => [labelOf(target), target]))
  const anyRequest = fc.oneof(...targets.map((target) => requestTo(target, source)))
  const judge = makeJudge()
  const good = new Set<string>()
  runToken = stage.live.token
  let pool = await makePool(stage)
  let count = 0
  await fc.assert(
    fc.asyncProperty(anyRequest, async (sent) => {
      if (++count % freshEvery === 0) {
        pool = await makePool(stage, count % (2 * freshEvery) === 0)
        runToken = (await stage.caller()).token
      }
      const target = byLabel.get(sent.target)!
      const reply = await send(sent, target, pool)
      if (reply.status < 300) good.add(target.operation.operationId)
      const trouble = reply.status === 500 ? 'a failure of the server' : troubleWith(target, reply, judge)
      expect([trouble, failures]).toEqual([null, []])
    }),
    { seed, numRuns: requests, endOnFailure: true, reporter: report },
  )
  // Else the requests would say little: most routes of things that are there did what they are for.
  const names = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => poolNameOf(path, match[1]!))
  const unnamed = targets.flatMap(({ path }) => names(path)).filter((name) => !isInPool(name))
  expect(unnamed).toEqual([])
  expect(good.size).toBeGreaterThan((targets.length * 2) / 3)
}, 300_000)
