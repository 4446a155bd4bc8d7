import { expect, test } from 'vitest'
import { realWorld } from './world.ts'

test('a time of many days is waited for, and not over at once', async () => {
  const over: string[] = []
  const giveUp = new AbortController()
  const days = 30 * 86_400_000
  const cancel = realWorld.after(days, () => over.push('after'))
  const slept = realWorld.sleep(days, giveUp.signal).then(
    () => over.push('sleep'),
    () => undefined,
  )
  await realWorld.sleep(50)
  cancel()
  giveUp.abort()
  await slept
  expect(over).toEqual([])
})
