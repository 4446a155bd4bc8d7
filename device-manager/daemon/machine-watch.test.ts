import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { MachineWatch } from './machine-watch.ts'

test('news of a harness is verified by one more look, whose own news is believed', async () => {
  const timers: (() => void)[] = []
  let now = 0
  const world = {
    ...realWorld,
    monotonic: () => now,
    after: (_ms: number, run: () => void) => {
      timers.push(run)
      return () => undefined
    },
  }
  const nothing = () => undefined
  let looks = 0
  const reports = {
    // Each look finds something else than the one before.
    lookAgain: async () => {
      looks++
      machine.verifyHarnesses()
      return true
    },
    tellChanges: nothing,
  }
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
  const machine: MachineWatch = new MachineWatch({ world, log, reports })
  const pass = async () => {
    now += 60_000
    for (const run of timers.splice(0)) run()
    await setImmediate()
  }
  // As found by another look, such as the one at a welcome.
  machine.verifyHarnesses()
  for (let i = 0; i < 5; i++) await pass()
  expect(looks).toBe(1)
  machine.verifyHarnesses()
  for (let i = 0; i < 5; i++) await pass()
  expect(looks).toBe(2)
  await machine.stop()
})
