import { cpus } from 'node:os'
import { describe, expect, it } from 'vitest'
import { idleProcessors, whenIdle } from './idle-processors.ts'

const processor = (busy: number, idle: number) => ({ times: { user: busy, nice: 0, sys: 0, idle, irq: 0 } })

it('counts the processors that were idle between two looks', () => {
  const before = [processor(100, 900), processor(500, 500)]
  expect(idleProcessors(before, [processor(200, 900), processor(500, 600)])).toBe(1)
  expect(idleProcessors(before, [processor(200, 900), processor(600, 500)])).toBe(0)
  expect(idleProcessors(before, [processor(100, 1_000), processor(500, 600)])).toBe(2)
})

it('says 0 where nothing is known', () => {
  expect(idleProcessors([], [])).toBe(0)
  expect(idleProcessors([processor(1, 1)], [processor(1, 1)])).toBe(0)
})

it('reads what the system says', async () => {
  const before = cpus()
  await new Promise((resolve) => setTimeout(resolve, 50))
  const idle = idleProcessors(before, cpus())
  expect(idle).toBeGreaterThanOrEqual(0)
  expect(idle).toBeLessThanOrEqual(before.length)
})

describe('work that is put off', () => {
  const afterMs = { few: 2_500, many: 50 }
  /** Its clock stands still until the test has a timer go off; each second takes `busy` of each processor. */
  function machine(processors: number, busy: number[]) {
    let now = 0
    let due: { at: number; fn: () => void } | null = null
    const acted: number[] = []
    const spent = Array.from({ length: processors }, () => ({ busy: 0, idle: 0 }))
    const world = {
      monotonic: () => now,
      after: (ms: number, fn: () => void) => {
        due = { at: now + ms, fn }
        return () => void (due = null)
      },
    }
    const cancel = whenIdle(world, afterMs, () => acted.push(now), {
      count: processors,
      look: () => spent.map(({ busy, idle }) => processor(busy, idle)),
    })
    const run = () => {
      while (due !== null) {
        const { at, fn } = due
        spent.forEach((each, index) => {
          each.busy += (at - now) * (busy[index] ?? 0)
          each.idle += (at - now) * (1 - (busy[index] ?? 0))
        })
        ;[now, due] = [at, null]
        fn()
      }
      return acted
    }
    return { run, cancel }
  }

  it.each<[string, number, number[], number[]]>([
    ['is done at the first look where a processor is idle', 2, [1, 0], [2_500]],
    ['comes after 12 s where a harness takes one and a half', 2, [1, 0.5], [12_500]],
    ['needs half of the only processor', 1, [0.5], [2_500]],
    ['waits for none of many', 8, Array.from({ length: 8 }, () => 1), [50]],
  ])('%s', (_, processors, busy, acted) => {
    expect(machine(processors, busy).run()).toEqual(acted)
  })

  it('is not done when it is cancelled', () => {
    const { cancel, run } = machine(2, [0, 0])
    cancel()
    expect(run()).toEqual([])
  })
})
