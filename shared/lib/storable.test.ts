import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseNested } from './storable.ts'

const nested = (depth: number, open = '[', close = ']'): string => open.repeat(depth) + close.repeat(depth)

test('reads what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(4), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      expect(parseNested(text, 40)).toEqual(JSON.parse(text))
    }),
  )
})

test.each(['', '"', '"\\', '[1,', '{"a"}', `"${'x'.repeat(100)}`, `[${'"\\",'.repeat(30)}`])('refuses %s', (text) => {
  expect(() => parseNested(text, 2)).toThrow(SyntaxError)
})

test('counts the depth of containers, and not what stands in texts', () => {
  expect(parseNested(nested(20), 20)).toEqual(JSON.parse(nested(20)))
  expect(() => parseNested(nested(21), 20)).toThrow('too deep')
  expect(() => parseNested(`{"a":${nested(20, '{"b":[', ']}')}}`, 20)).toThrow('too deep')
  const texts = ['['.repeat(100), '"['.repeat(100), '\\'.repeat(100), '\\"[['.repeat(100)]
  expect(parseNested(JSON.stringify(texts), 1)).toEqual(texts)
})

test('what is too deep or too much is refused without being parsed', { timeout: 5_000 }, () => {
  expect(() => parseNested(nested(8_000_000), 2_000)).toThrow('too deep')
  expect(() => parseNested(`[${'[],'.repeat(5_000_000)}[]]`, 2_000)).toThrow('too many')
  expect(parseNested(`[${'0,'.repeat(400_000)}0]`, 2_000)).toHaveLength(400_001)
})
