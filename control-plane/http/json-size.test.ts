import { expect, test } from 'vitest'
import { jsonExcess } from './json-size.ts'

const look = (value: string, limits = { values: 10, depth: 3, keys: 2 }) => jsonExcess(Buffer.from(value), limits)

test('counts values and depth, and not what stands in texts', () => {
  expect(look('[1,2,3,4,5,6,7,8,9,10]')).toBeNull()
  expect(look('[1,2,3,4,5,6,7,8,9,10,11]')).toBe('values')
  expect(look('[[],[],[],[],[],[]]')).toBe('values')
  expect(look('[[[1]]]')).toBeNull()
  expect(look('[[[[1]]]]')).toBe('depth')
  expect(look('[[],[[]]]')).toBeNull()
  expect(look(JSON.stringify(['[[[[[{{{{,,,,,,,,,,,,,,,', '"[[[[', '\\', '\\"[[[[']))).toBeNull()
  expect(look(JSON.stringify({ '[[[[': ',,,,,,,,,,,,,,,,,' }))).toBeNull()
})

test('counts the names of each object by itself', () => {
  expect(look('[{"a":1,"b":2},{"c":1,"d":2}]')).toBeNull()
  expect(look('{"a":{"b":1,"c":2},"d":[":::"]}')).toBeNull()
  expect(look('{"a":1,"b":{"x":1},"c":3}')).toBe('keys')
  expect(look('[{"a":1},{"b":1,"c":1,"d":1}]')).toBe('keys')
})

test('ends with text that is cut off', () => {
  for (const text of ['"', '"\\', '["\\"', '[', '{"a']) expect(look(text)).toBeNull()
})
