import { expect, test } from 'vitest'
import { contract } from '../../shared/api/index.ts'
import { openApiDocument } from './openapi.ts'
import type { PlainDocument } from './openapi-for-generators.ts'

// What typed clients are made of: the names, what must be sent, and what comes back.

const document = openApiDocument(contract, 'http://127.0.0.1:4310') as unknown as PlainDocument
const schemas = document.components.schemas!
const operations = Object.values(document.paths).flatMap((item) => Object.values(item))

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
/** Each object of the document with the way to it. */
function* objectsIn(value: unknown, way: readonly string[] = []): Generator<[Json, readonly string[]]> {
  if (!isObject(value)) return
  if (!Array.isArray(value)) yield [value, way]
  for (const [key, each] of Object.entries(value)) yield* objectsIn(each, [...way, key])
}
const all = [...objectsIn(document)]

test('each operation has a name of its own, of words that say what it does', () => {
  const ids = operations.map(({ operationId }) => operationId)
  const asFunctions = ids.map((id) => id.replaceAll('.', '').toLowerCase())
  expect(asFunctions.filter((name, at) => asFunctions.indexOf(name) !== at)).toEqual([])
  expect(ids.filter((id) => !/^[a-z][A-Za-z]*(\.[a-z][A-Za-z]*)*$/.test(id) || /alias/i.test(id))).toEqual([])
})

test('no field with a default must be sent', () => {
  // A default of a parameter may stay: whether it must be sent is said beside its schema.
  const inSchemas = [...objectsIn(schemas)].filter(([each, way]) => 'default' in each && way.at(-1) !== 'properties')
  expect(inSchemas.map(([, way]) => way.join('/'))).toEqual([])
  const told = schemas['TaskCreate']!['properties'] as Record<string, Json>
  expect(told['priority']!['description']).toBe('How urgent it is. Default: `"normal"`.')
  expect(schemas['TaskCreate']!['required']).toEqual(['title'])
  const parameters = operations.flatMap((operation) => (operation.parameters ?? []) as unknown as Json[])
  expect(parameters.filter(({ schema, required }) => 'default' in (schema as Json) && required === true)).toEqual([])
})

test('each reference leads to something', () => {
  const at = (ref: string) =>
    ref
      .split('/')
      .slice(1)
      .reduce<unknown>((found, key) => (isObject(found) ? found[key] : undefined), document)
  const refs = new Set(all.flatMap(([{ $ref }]) => (typeof $ref === 'string' ? [$ref] : [])))
  expect(refs.size).toBeGreaterThan(100)
  expect([...refs].filter((ref) => at(ref) === undefined)).toEqual([])
})

test('bodies and answers have names, and nothing large is written twice', () => {
  const inline = [...objectsIn(document.paths)].filter(([each]) => 'properties' in each && isObject(each['properties']))
  expect(inline.map(([, way]) => way.join('/'))).toEqual([])
  const within = all.filter(([each, way]) => isObject(each['properties']) && way.length > 3)
  const written = new Map<string, string[]>()
  for (const [each, way] of within) {
    if (Object.keys(each['properties'] as Json).length < 4) continue
    const text = JSON.stringify(each)
    written.set(text, [...(written.get(text) ?? []), way.join('/')])
  }
  expect([...written.values()].filter((ways) => ways.length > 1)).toEqual([])
})

test('each operation declares its errors as envelopes, and what the parameters of its path are', () => {
  const envelopes = ['Error', 'ShortError', 'PlainError'].map((name) => `#/components/schemas/${name}`)
  for (const { operationId, responses, parameters = [] } of operations) {
    const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400)
    expect([operationId, errors.map(([status]) => status)]).toEqual([
      operationId,
      expect.arrayContaining(['400', '429', '500', '503', '504']),
    ])
    for (const [, { content }] of errors) {
      const schema = content!['application/json']!.schema
      const forms = (schema['anyOf'] ?? [schema]) as Json[]
      expect(forms.map(({ $ref }) => $ref).filter((ref) => !envelopes.includes(String(ref)))).toEqual([])
    }
    const unsaid = parameters.filter((one) => (one.description ?? one.schema['description']) === undefined)
    expect([operationId, unsaid.filter((one) => one.in !== 'header').map(({ name }) => name)]).toEqual([
      operationId,
      [],
    ])
  }
})

test('streams are declared where they are sent', () => {
  const streams = operations.filter(({ responses }) => responses['200']?.content?.['text/event-stream'] !== undefined)
  const routes = contract.filter(({ stream }) => stream === 'sse').map(({ id }) => id)
  expect(streams.map(({ operationId }) => operationId)).toEqual(routes)
  expect(routes.length).toBeGreaterThan(0)
})
