import { expect, test, vi } from 'vitest'
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

test('a time of many days is over when it has passed, and not before', async () => {
  vi.useFakeTimers()
  try {
    const day = 86_400_000
    const over: string[] = []
    realWorld.after(60 * day, () => over.push('after'))
    realWorld.after(60 * day, () => over.push('cancelled'))()
    void realWorld.sleep(60 * day).then(() => over.push('sleep'))
    const cancelLate = realWorld.after(60 * day, () => over.push('cancelled late'))
    await vi.advanceTimersByTimeAsync(59 * day)
    expect(over).toEqual([])
    cancelLate()
    await vi.advanceTimersByTimeAsync(day)
    expect(over.toSorted()).toEqual(['after', 'sleep'])
  } finally {
    vi.useRealTimers()
  }
})
