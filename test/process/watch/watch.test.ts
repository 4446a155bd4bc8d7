import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { Patience } from '../../../device-manager/watch/patience.ts'
import { Watch } from '../../../device-manager/watch/watch.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { waitFor } from '../../kit/programs.ts'

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-watch-')))
  onTestFinished(() => rmSync(root, { recursive: true }))
})
const at = (...names: string[]) => join(root, ...names)

interface Beginning {
  patience?: Patience
  /** Returns the subjects that it found out about. */
  findOut?: (subjects: readonly string[]) => readonly string[]
}

function begin(
  world: World,
  { patience = new Patience(world, 5_000), findOut = () => [] }: Beginning = {},
): { watch: Watch; told: string[] } {
  const told: string[] = []
  const nothing = () => undefined
  const watch = new Watch({
    world,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    patience,
    changed: async (subjects) => {
      told.push(...subjects)
      return findOut(subjects)
    },
  })
  onTestFinished(() => watch.stop())
  return { watch, told }
}

test('what nothing tells of, a folder further up that is moved, is seen within the minute', async () => {
  const minutes: (() => void)[] = []
  const world: World = {
    ...realWorld,
    after(ms, run) {
      if (ms !== 60_000) return realWorld.after(ms, run)
      minutes.push(run)
      return () => undefined
    },
  }
  mkdirSync(at('up', 'here', 'site'), { recursive: true })
  const { watch, told } = begin(world)
  watch.set('site', [at('up', 'here', 'site')])
  await waitFor(() => told.length === 1 && minutes.length >= 2, 'the first look, and the one when the watch began')
  renameSync(at('up'), at('down'))
  const before = minutes.length
  minutes.at(-1)!()
  await waitFor(() => told.length === 2, 'it is told')
  expect(minutes.length).toBeGreaterThanOrEqual(before)
})

test('a file that is written a thousand times costs a few looks, and what came last is seen', async () => {
  writeFileSync(at('file'), '')
  const { watch, told } = begin(realWorld)
  watch.set('file', [at('file')])
  await waitFor(() => told.length === 1, 'the first look')
  const begun = performance.now()
  for (let count = 0; count < 1_000; count++) {
    writeFileSync(at('file'), String(count))
    if (count % 20 === 0) await realWorld.sleep(20)
  }
  const during = told.length
  // One look in half a second, of which one was the first.
  expect(during).toBeLessThanOrEqual(2 + (performance.now() - begun) / 500)
  rmSync(at('file'))
  await waitFor(() => told.length > during, 'the end is told')
})

test('a file that goes after it was looked at, and before it is watched, is told of soon', async () => {
  class Removing extends Patience {
    override wait: Patience['wait'] = async (who, ask) => {
      if (who === at('in', 'file')) rmSync(at('in'), { recursive: true, force: true })
      return super.wait(who, ask)
    }
  }
  mkdirSync(at('in'))
  writeFileSync(at('in', 'file'), '')
  const { watch, told } = begin(realWorld, { patience: new Removing(realWorld, 5_000) })
  watch.set('file', [at('in', 'file')])
  await waitFor(() => told.length === 2, 'its removal is told')
})

test('a subject that is of no interest any more is not told of', async () => {
  writeFileSync(at('one'), '')
  writeFileSync(at('two'), '')
  const { watch, told } = begin(realWorld)
  watch.set('one', [at('one')])
  watch.set('two', [at('two')])
  await waitFor(() => told.length === 2, 'the first look')
  watch.set('one', null)
  writeFileSync(at('one'), 'x')
  writeFileSync(at('two'), 'x')
  await waitFor(() => told.length > 2, 'the other is told')
  expect(told.slice(2)).not.toContain('one')
})

/** Finds out whether the folder is there; `away` says at which times it is moved before, and `back` whether it comes back after. */
function watchSite({ away, back }: { away: number; back: boolean }): boolean[] {
  mkdirSync(at('site'))
  writeFileSync(at('beside'), '')
  const found: boolean[] = []
  const { watch } = begin(realWorld, {
    findOut(subjects) {
      const isAway = found.length === away
      if (isAway) renameSync(at('site'), at('away'))
      found.push(existsSync(at('site')))
      if (isAway && back) renameSync(at('away'), at('site'))
      return subjects
    },
  })
  watch.set('site', [at('site'), at('beside')])
  return found
}

test('a folder that was away while it was found out about, before it was watched, is found out about again', async () => {
  const found = watchSite({ away: 0, back: true })
  await waitFor(() => found.length > 1, 'its watch began')
  expect(found).toEqual([false, true])
})

test('a folder that went and came back while it was found out about for another reason is there', async () => {
  const found = watchSite({ away: 2, back: true })
  await waitFor(() => found.length === 2, 'its watch began')
  writeFileSync(at('beside'), 'x')
  await waitFor(() => found.length > 3, 'it is found out about again')
  expect(found.slice(0, 4)).toEqual([true, true, false, true])
})

test('a folder that went while it was found out about for another reason, and came back, is there', async () => {
  const found = watchSite({ away: 2, back: false })
  await waitFor(() => found.length === 2, 'its watch began')
  writeFileSync(at('beside'), 'x')
  await waitFor(() => found.at(-1) === false, 'it is away')
  renameSync(at('away'), at('site'))
  await waitFor(() => found.at(-1) === true, 'it is there again')
})
