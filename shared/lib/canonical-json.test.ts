import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from './canonical-json.ts'

/** Copies the value with the fields of every object in another order. */
function shuffled(value: unknown, order: (names: string[]) => string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, order))
  if (typeof value !== 'object' || value === null) return value
  const fields = value as Record<string, unknown>
  const copy: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const name of order(Object.keys(fields))) copy[name] = shuffled(fields[name], order)
  return copy
}
const json = fc.jsonValue({ maxDepth: 6 })

describe('canonical JSON', () => {
  it('sorts fields by code units at every depth and adds no white space', () => {
    const value = { b: [{ z: 1, a: null }], a: 'é"', B: true, '10': 0, '9': -1.5e30, ä: {} }
    expect(canonicalJson(value)).toBe('{"10":0,"9":-1.5e+30,"B":true,"a":"é\\"","b":[{"a":null,"z":1}],"ä":{}}')
  })

  it('means the same value as JSON.stringify', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('does not depend on the order of fields', () => {
    fc.assert(
      fc.property(json, fc.infiniteStream(fc.nat()), (value, numbers) => {
        const order = (names: string[]) =>
          names
            .map((name) => ({ name, rank: numbers.next().value ?? 0 }))
            .sort((a, b) => a.rank - b.rank)
            .map(({ name }) => name)
        expect(canonicalJson(shuffled(value, order))).toBe(canonicalJson(value))
      }),
    )
  })

  it('tells different values apart', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        // Compared as parsers read them: -0 is 0 in both texts.
        const same = isSame(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)))
        expect(canonicalJson(a) === canonicalJson(b)).toBe(same)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is its own canonical form', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value)
        expect(canonicalJson(JSON.parse(text))).toBe(text)
      }),
    )
  })

  it('writes values that JSON does not have as JSON.stringify does', () => {
    expect(canonicalJson({ a: undefined, b: [undefined, Number.NaN], c: Infinity })).toBe('{"b":[null,null],"c":null}')
    expect(canonicalJson(undefined)).toBe('null')
    expect(canonicalJson(JSON.parse('{"__proto__":{"x":1},"a":2}'))).toBe('{"__proto__":{"x":1},"a":2}')
  })

  it('takes any depth and many fields', () => {
    const depth = 100_000
    expect(canonicalJson(JSON.parse('['.repeat(depth) + ']'.repeat(depth)))).toHaveLength(2 * depth)
    const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`f${at}`, at]))
    expect(Object.keys(JSON.parse(canonicalJson(many)) as object)).toHaveLength(200_000)
  })
})

function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [mine, theirs] = [Object.keys(a), Object.keys(b)]
  return (
    mine.length === theirs.length &&
    mine.every((name) => Object.hasOwn(b, name) && isSame(a[name as keyof typeof a], b[name as keyof typeof b]))
  )
}
