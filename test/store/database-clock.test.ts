import { expect } from 'vitest'
import { createMetrics, measureClock } from '../../control-plane/process/metrics.ts'
import { DatabaseClock } from '../../control-plane/db/database-clock.ts'
import { databaseNow } from '../../control-plane/db/dialect.ts'
import type { Log } from '../../control-plane/process/log.ts'
import { onBoth } from '../kit/database.ts'
import { movableWorld } from '../kit/server.ts'

const minutes = 60_000

onBoth(
  'the clock of a server is set right by that of PostgreSQL, and told of; SQLite has none',
  async ({ root, dialect }) => {
    const lines: string[] = []
    const write = (_: object, message: string) => void lines.push(message)
    const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log }
    const timers: (() => void)[] = []
    const own = { ...movableWorld(), after: (_: number, fn: () => void) => (timers.push(fn), () => undefined) }
    const clock = new DatabaseClock({ root, world: own, log })
    const metrics = createMetrics({ defaults: false })
    measureClock(metrics, clock)
    const shown = async () => /^svc_clock_offset_seconds (.*)$/m.exec(await metrics.registry.metrics())?.[1]
    /** As a timer of the server does it. */
    const looked = async (until: () => boolean) => {
      for (const fn of timers.splice(0)) fn()
      await expect.poll(() => until() && timers.length > 0).toBe(true)
    }
    await clock.start()
    expect([lines, await shown(), clock.offsetMs]).toEqual([[], '0', 0])
    own.advance(10 * minutes)
    if (dialect === 'sqlite') {
      expect(await databaseNow(root)).toBeNull()
      await looked(() => true)
      expect([lines, await shown(), clock.world.now() - own.now()]).toEqual([[], '0', 0])
      return
    }
    await looked(() => clock.offsetMs !== 0)
    expect(Math.abs(clock.world.now() - Date.now())).toBeLessThan(2_000)
    expect(lines).toEqual([
      expect.stringMatching(/^the clock of this machine is (599|600|601) s ahead of the database's/),
    ])
    expect(Number(await shown())).toBeCloseTo(-600, -1)
    own.advance(-20 * minutes)
    await looked(() => clock.offsetMs > 0)
    expect(Math.abs(clock.world.now() - Date.now())).toBeLessThan(2_000)
    expect(lines.at(-1)).toMatch(/ s behind the database's/)
    own.advance(10 * minutes)
    await looked(() => clock.offsetMs === 0)
    expect(lines).toEqual([
      expect.anything(),
      expect.anything(),
      expect.stringContaining("agrees with the database's again"),
    ])
    clock.stop()
  },
)
