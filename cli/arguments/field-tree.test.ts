import { expect, test } from 'vitest'
import { addField, type FieldTree } from './field-tree.ts'

const treeOf = (...fields: readonly (readonly [string, unknown])[]) => {
  const tree: FieldTree = {}
  for (const [key, value] of fields) addField(tree, key, value)
  return tree
}

test('fields make objects and lists', () => {
  expect(treeOf(['a', 1], ['b[c]', 'x'], ['b[d][]', 1], ['b[d][]', 2])).toEqual({ a: 1, b: { c: 'x', d: [1, 2] } })
  expect(treeOf(['a', 1], ['a', 2])).toEqual({ a: 2 })
})

test.each([['a[b'], ['[a]'], ['a]'], ['__proto__[x]'], ['a[__proto__]']])('%s is no key', (key) => {
  expect(() => treeOf([key, 1])).toThrow(/key/)
  expect(({} as { x?: unknown }).x).toBeUndefined()
})

test('a value and an object at one place are refused', () => {
  expect(() => treeOf(['a', 1], ['a[b]', 2])).toThrow(/given as a value/)
  expect(() => treeOf(['a[]', 1], ['a[b]', 2])).toThrow(/given as a value/)
})
