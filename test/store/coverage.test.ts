import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Every function that a store exports is called by a test that runs on both databases. */
test('no store function is without a test here', () => {
  const stores = globSync('control-plane/**/*store.ts')
  expect(stores.length).toBeGreaterThan(8)
  const exported = stores.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^export (?:async )?function (\w+)/gm)].map((match) => match[1]!),
  )
  const tests = globSync('test/store/*.ts')
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
  expect(exported.filter((name) => !new RegExp(`\\b${name}\\(`).test(tests))).toEqual([])
})
