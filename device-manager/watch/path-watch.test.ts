import { EventEmitter } from 'node:events'
import type { watch } from 'chokidar'
import { expect, test } from 'vitest'
import { woundWorld } from '../../test/kit/wound-world.ts'
import { maxPaths, PathWatch } from './path-watch.ts'

/** Plays the library, and thereby the system below it. */
function library() {
  const started: { paths: string[]; watcher: EventEmitter & { isClosed: boolean } }[] = []
  let trouble: Error | null = null
  const start = (paths: string[]) => {
    if (trouble) throw trouble
    const watcher = Object.assign(new EventEmitter(), {
      isClosed: false,
      async close() {
        watcher.isClosed = true
        watcher.removeAllListeners()
      },
    })
    started.push({ paths, watcher })
    return watcher
  }
  return {
    started,
    load: async () => start as unknown as typeof watch,
    fail: (error: Error | null) => void (trouble = error),
  }
}

function make() {
  const world = woundWorld()
  const fake = library()
  const said: string[] = []
  let changes = 0
  const note = (_: object, text: string) => void said.push(text)
  const log = { debug: note, info: note, warn: note, error: note }
  const it = new PathWatch({ world, log, changed: () => void changes++, load: fake.load })
  return { ...fake, world, said, it, changes: () => changes }
}
const settle = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}
const noRoom = Object.assign(new Error('no room'), { code: 'ENOSPC' })

test('nothing is loaded for nothing, and the same paths are not watched anew', async () => {
  const { it, started, changes } = make()
  it.watch([])
  await settle()
  expect(started).toEqual([])
  it.watch(['/b', '/a', '/b'])
  await settle()
  it.watch(['/a', '/b'])
  await settle()
  expect(started.map(({ paths }) => paths)).toEqual([['/a', '/b']])
  started[0]!.watcher.emit('ready')
  started[0]!.watcher.emit('all')
  expect(changes()).toBe(2)
})

test('other paths take the place of those before, and paths without end are cut', async () => {
  const { it, started } = make()
  it.watch(['/a'])
  it.watch(['/b'])
  await settle()
  it.watch(Array.from({ length: 10_000 }, (_, index) => `/p${index}`))
  await settle()
  expect(started.map(({ paths }) => paths.length)).toEqual([1, maxPaths])
  expect(started[0]!.watcher.isClosed).toBe(true)
  await it.stop()
  expect(started[1]!.watcher.isClosed).toBe(true)
})

test.each([
  ['says so', (fake: ReturnType<typeof make>) => fake.started.at(-1)!.watcher.emit('error', noRoom)],
  ['throws', () => undefined],
])('a system that refuses (%s) is said once, left alone, and tried again later', async (how, refuse) => {
  const fake = make()
  const { it, started, world, said } = fake
  const isThrown = how === 'throws'
  if (isThrown) fake.fail(noRoom)
  it.watch(['/a'])
  await settle()
  refuse(fake)
  it.watch(['/b'])
  await settle()
  expect(started.every(({ watcher }) => watcher.isClosed)).toBe(true)
  world.advance(10 * 60_000)
  await settle()
  refuse(fake)
  await settle()
  expect(said).toEqual(['folders and sign-ins cannot be watched; they are looked at each minute'])
  fake.fail(null)
  world.advance(10 * 60_000)
  await settle()
  expect(started.at(-1)!.paths).toEqual(['/b'])
  started.at(-1)!.watcher.emit('ready')
  expect(said.slice(1)).toEqual(['folders and sign-ins are watched again'])
})
