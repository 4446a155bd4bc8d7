import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { woundWorld } from '../../test/kit/wound-world.ts'
import { MachineWatch } from './machine-watch.ts'

/** A watch of harnesses whose looks find news as `isNew` says of the number of the look. */
function watched(isNew: (look: number) => boolean) {
  const world = woundWorld()
  const nothing = () => undefined
  const looks: number[] = []
  const reports = {
    probeAgain: async () => {
      looks.push(world.monotonic())
      const found = isNew(looks.length)
      if (found) machine.verifyHarnesses()
      return found
    },
    tellChanges: nothing,
  }
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
  const machine: MachineWatch = new MachineWatch({ world, log, reports })
  const pass = async (seconds: number) => {
    for (let step = 0; step < seconds * 2; step++) {
      world.advance(500)
      await setImmediate()
    }
  }
  return { machine, looks, pass }
}

test('news of a harness is verified by one more look', async () => {
  const { machine, looks, pass } = watched(() => false)
  // As found by another look, such as the one at a welcome.
  machine.verifyHarnesses()
  await pass(60)
  expect(looks).toHaveLength(1)
  await machine.stop()
})

test('what a look that verifies finds anew is verified, too', async () => {
  // A file was there for the moment of the first of them.
  const { machine, looks, pass } = watched((look) => look <= 2)
  machine.verifyHarnesses()
  await pass(60)
  expect(looks).toHaveLength(3)
  expect(looks.at(-1)).toBeLessThan(3_000)
  await machine.stop()
})

test('a harness that is another one at each look is asked ever less often', async () => {
  const { machine, looks, pass } = watched(() => true)
  machine.verifyHarnesses()
  await pass(600)
  expect(looks.length).toBeGreaterThan(8)
  expect(looks.length).toBeLessThan(20)
  await machine.stop()
})
