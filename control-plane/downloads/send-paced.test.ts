import { Readable, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { leastPace, sendPaced } from './send-paced.ts'

/** A clock that a test moves, and a reader that takes what the test lets it. */
function stage(length: number, told = length) {
  const timers = new Map<() => void, number>()
  let now = 0
  const world = {
    after(ms: number, act: () => void) {
      timers.set(act, now + ms)
      return () => void timers.delete(act)
    },
  }
  let taken = 0
  let next: (() => void) | null = null
  const reader = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, done) {
      taken += chunk.length
      next = done
    },
  })
  const bytes = Readable.from(
    Array.from({ length: length / 65_536 }, () => Buffer.alloc(65_536)),
    { objectMode: false },
  )
  const sent = sendPaced({ bytes, length: told, to: reader }, world).then(
    () => 'sent',
    (error: Error) => error.message,
  )
  return {
    sent,
    timers,
    taken: () => taken,
    take: async (most: number) => {
      const until = taken + most
      while (!bytes.destroyed || next !== null) {
        const go = next
        next = null
        go?.()
        await new Promise((resolve) => setImmediate(resolve))
        if (taken >= until) return
      }
    },
    pass: (ms: number) => {
      now += ms
      for (const [act, at] of timers) if (at <= now && timers.delete(act)) act()
    },
  }
}

test('a reader that takes enough in each span gets all of it', async () => {
  const { sent, take, pass, timers } = stage(leastPace.bytes * 4)
  for (let span = 0; span < 3; span++) {
    await take(leastPace.bytes + 65_536)
    pass(leastPace.ms)
  }
  await take(leastPace.bytes * 4)
  expect([await sent, timers.size]).toEqual(['sent', 0])
})

test('one that stops taking is cut off, also in the middle', async () => {
  const { sent, take, pass, timers } = stage(leastPace.bytes * 4)
  await take(leastPace.bytes + 65_536)
  pass(leastPace.ms)
  await take(65_536)
  pass(leastPace.ms)
  expect([await sent, timers.size]).toEqual(['its reader is too slow', 0])
})

test('bytes that the storage gives too many or too few are no whole answer, and none too many is sent', async () => {
  const [long, short] = [stage(65_536 * 3, 65_536 * 2), stage(65_536, 65_536 * 2)]
  await long.take(65_536 * 3)
  expect([await long.sent, long.taken()]).toEqual(['the storage gives more than 131072 bytes', 131_072])
  await short.take(65_536 * 2)
  expect(await short.sent).toBe('the storage gave 65536 bytes of 131072')
})
