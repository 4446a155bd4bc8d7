import { expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import type { TerminalReader } from '../process/terminal-readers.ts'
import { TerminalWatch } from './terminal-watch.ts'

/** A watch over a terminal at which `readers` wait, and a clock that is moved by hand. */
function watched(readers: TerminalReader[] | null) {
  let now = 0
  let timer: { at: number; fn: () => void } | null = null
  const world: World = {
    ...realWorld,
    monotonic: () => now,
    after: (ms, fn) => {
      const set = { at: now + ms, fn }
      timer = set
      return () => {
        if (timer === set) timer = null
      }
    },
  }
  const told: unknown[] = []
  const watch = new TerminalWatch({
    world,
    quietMs: 20_000,
    listReaders: () => readers,
    tell: ({ data }) => told.push(data),
  })
  watch.start()
  return {
    told,
    watch,
    pass: (ms: number) => {
      for (const end = now + ms; now < end;) {
        now += 1_000
        if (timer !== null && timer.at <= now) {
          const due = timer
          timer = null
          due.fn()
        }
      }
    },
  }
}

const less = [{ pid: 7, name: 'less' }]

test('a program that waits is told within half a minute, and again when it has printed and waits once more', () => {
  const { told, watch, pass } = watched(less)
  pass(30_000)
  expect(told).toEqual([
    { class: 'waits_for_terminal', willRetry: false, message: expect.stringContaining('less (process 7) waits') },
  ])
  pass(600_000)
  expect(told).toHaveLength(1)
  watch.sawTraffic()
  pass(30_000)
  expect(told).toHaveLength(2)
})

test('one that prints now and then is not told, nor one after its run has ended', () => {
  const { told, watch, pass } = watched(less)
  for (let i = 0; i < 20; i++) {
    pass(15_000)
    watch.sawTraffic()
  }
  watch.stop()
  pass(600_000)
  expect(told).toEqual([])
})

test('one that asks again and again is told twenty times', () => {
  const { told, watch, pass } = watched(less)
  for (let i = 0; i < 50; i++) {
    pass(60_000)
    watch.sawTraffic()
  }
  expect(told).toHaveLength(20)
})

test('where the system does not tell who waits, silence is told once', () => {
  const { told, watch, pass } = watched(null)
  for (let i = 0; i < 5; i++) {
    pass(60_000)
    watch.sawTraffic()
  }
  expect(told).toEqual([expect.objectContaining({ message: expect.stringContaining('Nothing was printed for 40 s') })])
})
