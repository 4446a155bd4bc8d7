import { expect, test } from 'vitest'
import { woundWorld } from '../../test/kit/wound-world.ts'
import { keepRelease } from './release-use.ts'

test('a release is marked as used each minute, so that one that runs is known as such soon after a long sleep', () => {
  const world = woundWorld()
  let touched = 0
  keepRelease(world, () => void touched++)
  expect(touched).toBe(1)
  for (let minute = 0; minute < 3; minute++) world.advance(60_000)
  expect(touched).toBe(4)
})

test('what is no release is not marked again', () => {
  const world = woundWorld()
  let tried = 0
  keepRelease(world, () => {
    tried++
    throw new Error('ENOENT')
  })
  world.advance(600_000)
  expect(tried).toBe(1)
})
