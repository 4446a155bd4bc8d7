import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { createStreamLog } from '../../../device-manager/log/log.ts'
import { isAlive } from '../../../device-manager/process/identity.ts'
import type { HostConnection } from '../../../device-manager/run/hosts/host-connection.ts'
import { HostPool } from '../../../device-manager/run/hosts/host-pool.ts'
import { placesIn } from '../../../device-manager/setup/places.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { testDevice, until } from './host-client.ts'

/** A pool of real hosts. Its clock can be moved, and what is to be done minutes later is done then. */
function poolOf({ room }: { room: number }) {
  const device = testDevice()
  let moved = 0
  const later = new Map<() => void, number>()
  const world: World = {
    ...realWorld,
    monotonic: () => realWorld.monotonic() + moved,
    after(ms, act) {
      if (ms < 60_000) return realWorld.after(ms, act)
      later.set(act, realWorld.monotonic() + moved + ms)
      return () => later.delete(act)
    },
  }
  const pool = new HostPool({
    places: placesIn(device.stateDir),
    world,
    log: createStreamLog(new PassThrough().resume(), { level: 'error', world }),
    spoolPages: 1_000,
    unsentBytes: 1_000_000,
    silentMs: 60_000,
    wall: () => null,
    room: () => room,
  })
  const taken: HostConnection[] = []
  onTestFinished(async () => {
    for (const host of taken) host.send({ type: 'discard' })
    await pool.stop()
    device.remove()
  })
  return {
    pool,
    /** Hosts that live and belong to no run of the test. */
    idle: () =>
      pool.records.list().filter((record) => isAlive(record) && !taken.some(({ hostId }) => hostId === record.hostId)),
    take: async (): Promise<'at once' | 'later'> => {
      const ready = pool.takeReady()
      taken.push(ready ?? (await pool.take()))
      return ready === null ? 'later' : 'at once'
    },
    move: (ms: number): void => {
      moved += ms
      const due = [...later].filter(([, at]) => at <= realWorld.monotonic() + moved)
      for (const [act] of due) {
        later.delete(act)
        act()
      }
    },
  }
}

test('after runs that came together as many hosts stand by, and leave when no such moment came again', async () => {
  const { pool, idle, take, move } = poolOf({ room: 3 })
  pool.warm()
  await until(() => pool.standing === 1, 'one host stands by')
  const first = await Promise.all([take(), take(), take()])
  expect(first).toEqual(['at once', 'later', 'later'])
  pool.warm()
  await until(() => pool.standing === 3, 'three hosts stand by')
  expect(await Promise.all([take(), take(), take()])).toEqual(['at once', 'at once', 'at once'])
  pool.warm()
  await until(() => pool.standing === 3, 'three hosts stand by again')
  move(120_000)
  await until(() => idle().length === 1, 'two of them left')
  expect(pool.standing).toBe(1)
  expect(await take()).toBe('at once')
})

test('a host that ended while it stood by is nobody’s, and is replaced', async () => {
  const { pool, idle, take } = poolOf({ room: 3 })
  pool.warm()
  await until(() => pool.standing === 1, 'one host stands by')
  const [lost] = idle()
  process.kill(lost!.pid, 'SIGKILL')
  await until(() => pool.standing === 0, 'the pool sees its end')
  pool.warm()
  await until(() => pool.standing === 1, 'another one stands by')
  expect(await take()).toBe('at once')
})
