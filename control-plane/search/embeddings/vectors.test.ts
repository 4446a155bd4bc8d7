import { expect, test } from 'vitest'
import { fuse } from '../fuse.ts'
import { endpointOf } from './settings.ts'
import {
  bytesOfCode,
  bytesOfVector,
  codeOf,
  nearest,
  normalized,
  readCode,
  similarity,
  vectorOfBytes,
} from './vectors.ts'

test('a vector keeps its direction and is stored as it is', () => {
  const vector = normalized([3, 0, -4])
  expect([...vector].map((value) => Math.round(value * 10))).toEqual([6, 0, -8])
  expect(vectorOfBytes(bytesOfVector(vector))).toEqual(vector)
  expect(similarity(vector, vector)).toBeCloseTo(1)
  expect(similarity(vector, normalized([4, 0, 3]))).toBeCloseTo(0)
  expect([...normalized([0, 0])]).toEqual([0, 0])
})

test('a code has a bit for each positive dimension, and is stored as it is', () => {
  const code = codeOf(Float32Array.from({ length: 40 }, (_, i) => (i === 1 || i === 33 ? 1 : -1)))
  expect([...code]).toEqual([2, 2])
  const codes = new Uint32Array(4)
  readCode(bytesOfCode(code), codes, 2)
  expect([...codes]).toEqual([0, 0, 2, 2])
})

test('the codes that differ least come first, the earlier one of equals', () => {
  const codes = Uint32Array.from([0b1111, 0b0000, 0b0011, 0xffff_ffff, 0b0000, 0x8000_0000])
  const find = (most: number) => nearest(Uint32Array.from([0b0001]), { codes, count: 6, most })
  expect(find(6)).toEqual([1, 2, 4, 5, 0, 3])
  expect(find(2)).toEqual([1, 2])
  expect(nearest(Uint32Array.from([1]), { codes, count: 0, most: 3 })).toEqual([])
})

test('what is high in both lists comes before what is highest in one', () => {
  const lists = [
    ['a', 'b', 'c'],
    ['d', 'b', 'e'],
  ]
  expect(fuse(lists, (item) => item)).toEqual(['b', 'a', 'd', 'c', 'e'])
})

test.each([
  ['https://host', 'https://host/v1/embeddings'],
  ['https://host/v1/', 'https://host/v1/embeddings'],
  ['https://host/openai/v1/embeddings', 'https://host/openai/v1/embeddings'],
  ['https://host/embeddings?api-version=1', 'https://host/embeddings?api-version=1'],
])('%s is asked at %s', (url, endpoint) => expect(endpointOf(url)).toBe(endpoint))
