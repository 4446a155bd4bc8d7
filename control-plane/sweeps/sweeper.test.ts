import { expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import type { Knex } from 'knex'
import { silentLog } from '../process/log.ts'
import { Sweeper, type Sweep } from './sweeper.ts'

/** A clock that a test moves, second by second. */
function steppedWorld() {
  let now = 0
  let timers: { at: number; work: () => void }[] = []
  const after: World['after'] = (ms, work) => {
    const timer = { at: now + ms, work }
    timers.push(timer)
    return () => void (timers = timers.filter((each) => each !== timer))
  }
  const world: World = { ...realWorld, now: () => now, monotonic: () => now, after }
  return {
    world,
    /** Time in which nothing runs. */
    sleep: (ms: number) => void (now += ms),
    pass: async (ms: number) => {
      for (const end = now + ms; now < end;) {
        now += 1_000
        const due = timers.filter(({ at }) => at <= now)
        timers = timers.filter(({ at }) => at > now)
        for (const { work } of due) work()
        // A sweep runs beside the clock; this lets it come to its end.
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

function start() {
  const { world, pass } = steppedWorld()
  const ran: string[] = []
  const sweepOf = (name: string, everyMs: number) => ({ name, everyMs, run: async () => void ran.push(name) })
  const sweeps = [sweepOf('hourly', 3_600_000), sweepOf('often', 10_000)]
  const root = null as unknown as Knex
  const sweeper = new Sweeper({ root, world, log: silentLog, sweeps, tickMs: 1_000 })
  const count = (name: string) => ran.filter((each) => each === name).length
  sweeper.start()
  return { sweeper, pass, count }
}

test('an hourly sweep also runs on a server that is restarted every ten minutes', async () => {
  let runs = 0
  for (let restart = 0; restart < 6; restart++) {
    const { sweeper, pass, count } = start()
    await pass(600_000)
    await sweeper.stop()
    runs += count('hourly')
  }
  expect(runs).toBe(6)
})

test('after the first pass a sweep keeps to its period', async () => {
  const { sweeper, pass, count } = start()
  await pass(29_000)
  expect([count('hourly'), count('often')]).toEqual([0, 2])
  await pass(3_600_000)
  expect(count('hourly')).toBe(1)
  await pass(60_000)
  expect(count('hourly')).toBe(2)
  await sweeper.stop()
})

test('after a break sweeps know since when the server is awake, the first one, too', async () => {
  const { world, pass, sleep } = steppedWorld()
  const seen: { now: number; awakeSince: number }[] = []
  const run: Sweep['run'] = async ({ now, awakeSince }) => void seen.push({ now, awakeSince: awakeSince() })
  const root = null as unknown as Knex
  const sweeper = new Sweeper({
    root,
    world,
    log: silentLog,
    sweeps: [{ name: 'often', everyMs: 1_000, run }],
    tickMs: 1_000,
    jumpMs: 90_000,
  })
  sweeper.start()
  await pass(2_000)
  expect(seen.at(-1)).toMatchObject({ awakeSince: 0 })
  await pass(90_000)
  expect(seen.at(-1)).toMatchObject({ awakeSince: 0 })
  sleep(120_000)
  const before = seen.length
  await pass(3_000)
  const [first, ...later] = seen.slice(before)
  expect(first!.awakeSince).toBe(first!.now)
  expect(later.map(({ awakeSince }) => awakeSince)).toEqual(later.map(() => first!.now))
  await sweeper.stop()
})
