import { expect, test } from 'vitest'
import { woundWorld, type WoundWorld } from '../../test/kit/wound-world.ts'
import { Paced } from './paced.ts'

function paced(world: WoundWorld, answers: (asked: Paced) => Promise<boolean>) {
  const acts: number[] = []
  const it: Paced = new Paced({
    world,
    soonMs: 100,
    gapMs: 500,
    maxGapMs: 4_000,
    act: () => {
      acts.push(world.monotonic())
      return answers(it)
    },
  })
  return { it, acts }
}

/** Lets the time pass in small steps, as promises settle between them. */
async function pass(world: WoundWorld, ms: number, each: () => void = () => undefined): Promise<void> {
  for (let step = 0; step < ms; step += 50) {
    each()
    world.advance(50)
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
}

test('what is asked for together is done once, and soon', async () => {
  const world = woundWorld()
  const { it, acts } = paced(world, async () => true)
  it.ask()
  it.ask()
  await pass(world, 2_000)
  expect(acts).toEqual([100])
})

test('what is asked for without end is done at the gap, and ever less often while nothing new is found', async () => {
  const world = woundWorld()
  const fresh = paced(world, async () => true)
  await pass(world, 2_000, () => fresh.it.ask())
  expect(fresh.acts).toEqual([100, 600, 1_100, 1_600])
  const stale = paced(world, async () => false)
  await pass(world, 30_000, () => stale.it.ask())
  const gaps = stale.acts.slice(1).map((at, index) => at - stale.acts[index]!)
  expect(gaps).toEqual([1_000, 2_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000])
})

test('after a quiet time it is soon again, however long the gap had become', async () => {
  const world = woundWorld()
  const { it, acts } = paced(world, async () => false)
  await pass(world, 10_000, () => it.ask())
  await pass(world, 20_000)
  const before = world.monotonic()
  it.ask()
  await pass(world, 1_000)
  expect(acts.at(-1)).toBe(before + 100)
})

test('what is asked for during an act is followed by another one, and after the end by none', async () => {
  const world = woundWorld()
  let asks = 1
  const { it, acts } = paced(world, async (own) => {
    if (asks-- > 0) own.ask()
    return true
  })
  it.ask()
  await pass(world, 3_000)
  expect(acts).toEqual([100, 600])
  it.ask()
  it.stop()
  it.ask()
  await pass(world, 3_000)
  expect(acts).toHaveLength(2)
})
