import { expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { MemoryWatch } from './memory.ts'

const limit = 1024 ** 3

/** A watch over a sandbox of 1 GiB, whose files say what the test says. `pass`: a second with this share held and so many pages read again. */
function watched() {
  const files = new Map([
    ['/sys/fs/cgroup/memory.max', String(limit)],
    ['/sys/fs/cgroup/memory.events', 'oom_kill 0'],
  ])
  let tick: (() => void) | null = null
  const world: World = {
    ...realWorld,
    after: (_ms, fn) => {
      tick = fn
      return () => (tick = null)
    },
  }
  const told: string[] = []
  const watch = new MemoryWatch(
    world,
    'small',
    (message) => told.push(message),
    (path) => files.get(path) ?? null,
  )
  let faults = 0
  const pass = (share: number, more: number) => {
    faults += more
    files.set('/sys/fs/cgroup/memory.stat', `anon ${Math.round(limit * share)}\npgmajfault ${faults}`)
    const due = tick
    tick = null
    due?.()
  }
  return { watch, told, pass, files }
}

const times = (count: number, act: () => void) => Array.from({ length: count }).forEach(act)

test('memory that is full, while programs are read again and again, is told once after five seconds', () => {
  const { told, pass } = watched()
  times(4, () => pass(0.95, 300))
  expect(told).toEqual([])
  times(5, () => pass(0.95, 300))
  expect(told).toEqual([
    'The sandbox ran out of memory (small, 1 GiB): it did little else but to read its programs again.',
  ])
})

test('a pause between begins the count anew', () => {
  const { told, pass } = watched()
  times(4, () => pass(0.95, 300))
  pass(0.95, 10)
  times(4, () => pass(0.95, 300))
  expect(told).toEqual([])
})

test('full memory alone is no thrashing, nor is much reading in memory that has room', () => {
  const { told, pass } = watched()
  times(10, () => pass(0.99, 0))
  times(10, () => pass(0.5, 5_000))
  expect(told).toEqual([])
})

test('nothing is told once it is stopped', () => {
  const { told, pass, watch } = watched()
  times(4, () => pass(0.95, 300))
  watch.stop()
  times(4, () => pass(0.95, 300))
  expect(told).toEqual([])
})

test('a kill by the kernel since the run began is told, and one before it is not', () => {
  const { watch, files } = watched()
  expect(watch.exhausted({ exitCode: 1, signal: null })).toBeNull()
  files.set('/sys/fs/cgroup/memory.events', 'oom_kill 1')
  expect(watch.exhausted({ exitCode: 1, signal: null })).toContain('the kernel ended a process of the run')
})
