import { expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { IdleMemory } from './idle-memory.ts'

test('collects once when requests stop, if there is much memory to free', () => {
  let tick = () => {}
  const after: World['after'] = (_ms, run) => {
    tick = run
    return () => (tick = () => {})
  }
  let resident = 100
  let collections = 0
  const memory = new IdleMemory({
    world: { ...realWorld, after },
    resident: () => resident,
    collect: () => void collections++,
  })
  memory.start()
  tick()
  memory.active()
  resident = 300
  tick()
  expect(collections).toBe(0)
  tick()
  tick()
  expect(collections).toBe(1)
  memory.active()
  tick()
  resident = 120
  tick()
  expect(collections).toBe(1)
  memory.stop()
  resident = 500
  tick()
  expect(collections).toBe(1)
})

test('the real garbage collection can be called', () => {
  let tick = () => {}
  const after: World['after'] = (_ms, run) => {
    tick = run
    return () => undefined
  }
  let asked = 0
  const resident = () => (asked++ < 2 ? 1 : 10)
  const memory = new IdleMemory({ world: { ...realWorld, after }, resident })
  memory.start()
  tick()
  memory.active()
  tick()
  expect(() => tick()).not.toThrow()
})
