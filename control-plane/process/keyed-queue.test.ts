import { expect, test } from 'vitest'
import { silentLog } from './log.ts'
import { KeyedQueue } from './keyed-queue.ts'

function start() {
  const lines = new KeyedQueue(silentLog, 'failed')
  lines.start()
  const done: string[] = []
  const waiting = new Map<string, () => void>()
  /** A piece that goes on until it is let go. */
  const held = (name: string) => async () => {
    await new Promise<void>((resolve) => waiting.set(name, resolve))
    done.push(name)
  }
  const quick = (name: string) => async () => void done.push(name)
  const letGo = async (...names: string[]) => {
    for (const name of names) waiting.get(name)?.()
    await tick()
  }
  return { lines, done, waiting, held, quick, letGo }
}
const tick = () => new Promise((resolve) => setImmediate(resolve))

test('pieces of one line run one after another, while other lines continue', async () => {
  const { lines, done, held, quick, letGo } = start()
  lines.add('a', held('a1'))
  lines.add('a', quick('a2'))
  lines.add('b', quick('b1'))
  await tick()
  expect(done).toEqual(['b1'])
  await letGo('a1')
  expect(done).toEqual(['b1', 'a1', 'a2'])
})

test('a waiting piece is not added twice, but a running one may be added again', async () => {
  const { lines, done, held, quick, letGo } = start()
  lines.add('a', held('first'), 'key')
  await tick()
  lines.add('a', quick('second'), 'key')
  lines.add('a', quick('third'), 'key')
  lines.add('b', quick('other'), 'key')
  await letGo('first')
  expect(done).toEqual(['other', 'first', 'second'])
})

test('the number of active lines is limited, and each line gets its turn', async () => {
  const { lines, done, waiting, held, quick, letGo } = start()
  const names = Array.from({ length: 40 }, (_each, at) => `line ${at}`)
  for (const name of names) lines.add(name, held(name))
  lines.add('line 0', quick('behind'))
  await tick()
  expect(waiting.size).toBe(32)
  await letGo('line 0')
  // Behind those that were ready before it.
  expect([waiting.has('line 32'), done]).toEqual([true, ['line 0']])
  await letGo(...names.slice(1))
  await letGo(...names.slice(1))
  await lines.idle()
  expect(done).toHaveLength(41)
})

test('idle waits for pieces added by other pieces, and a failed piece delays none', async () => {
  const { lines, done, quick } = start()
  lines.add('a', () => Promise.reject(new Error('broken')))
  lines.add('a', async () => lines.add('b', quick('b')))
  await lines.idle()
  expect(done).toEqual(['b'])
})

test('stop waits for running pieces and drops the waiting ones', async () => {
  const { lines, done, held, quick, letGo } = start()
  lines.add('a', held('at work'))
  lines.add('a', quick('left out'))
  await tick()
  const stopped = lines.stop()
  await letGo('at work')
  await stopped
  expect(done).toEqual(['at work'])
})
