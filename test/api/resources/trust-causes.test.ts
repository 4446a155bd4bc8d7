import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TriggerSource } from '../../../shared/api/runs.ts'
import { askers } from '../../../control-plane/trust/askers.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { otherCases } from './trust-other-cases.ts'
import { quiet, sceneOf, waitingOf, type Case } from './trust-scene.ts'
import { taskCases } from './trust-task-cases.ts'

// Walks all trigger sources. Whatever she does beside whatever he does, no run that follows her words, or runs her program, reaches
// his device. What he asks for by himself does.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const cases: Record<Exclude<TriggerSource, 'heartbeat' | 'unknown'>, Case[]> = { ...taskCases, ...otherCases }

test('each trigger source of the documents has its cases', () => {
  const used = Object.entries(askers).filter(([, names]) => names.length > 0)
  expect(Object.keys(cases).toSorted()).toEqual(used.map(([source]) => source).toSorted())
})

describe.each(Object.entries(cases))('%s', (source, ofSource) => {
  test.each(ofSource)('$title', async ({ act, isHis = false }) => {
    const scene = await sceneOf(server)
    const agentId = await act(scene)
    await quiet(server)
    const { root } = server.database
    if (isHis) {
      const work = await scene.device.take()
      const { triggerSource, agent } = await server.ok(`/runs/${work.runId}`, { token: scene.he.token })
      expect([triggerSource, agent.id]).toEqual([source, agentId])
      await work.end()
    } else {
      const waiting = await waitingOf(server, { agentId, by: scene.he })
      expect(waiting.map(({ triggerSource, gateReason }) => [triggerSource, gateReason])).toEqual([
        [source, 'governance_refused'],
      ])
      const [last] = waiting
      expect(await root('runs').where({ id: last!.id }).first('device', 'fence')).toEqual({ device: null, fence: 0 })
    }
    await scene.device.disconnect()
  })
})

test('a wake is not folded into a run that waits in vain for what somebody else asked', async () => {
  const scene = await sceneOf(server)
  const { id, key } = await scene.taskOf(scene.he)
  const start = (by: Person, prompt = 'Go.') =>
    server.ok(`/agents/${scene.his}/runs`, { body: { taskId: key, source: 'assignment', prompt }, token: by.token })
  await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
  await scene.clear(scene.his)
  const hers = await start(scene.she)
  expect((await server.ok(`/runs/${hers.runPublicId}`, { token: scene.he.token })).gateReason).toBe(
    'governance_refused',
  )
  expect((await start(scene.she)).kind).toBe('coalesced')
  const his = await start(scene.he)
  expect(his.runPublicId).not.toBe(hers.runPublicId)
  expect((await scene.device.take()).runId).toBe(his.runPublicId)
  // Nor into one whose prompt only ends alike.
  const long = await start(scene.she, 'Read it. Then tidy.')
  expect(long.kind).not.toBe('coalesced')
  expect((await start(scene.she, 'tidy.')).kind).not.toBe('coalesced')
  await scene.device.disconnect()
})

test('a run that no device may take holds up no other one of its task', async () => {
  const scene = await sceneOf(server)
  const { id, key } = await scene.taskOf(scene.he)
  const held = await server.startRun(scene.his, { taskId: key }, scene.she.token)
  const also = await server.startRun(scene.hers, { taskId: key }, scene.she.token)
  await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
  await quiet(server)
  const work = await scene.device.take()
  expect([held, also]).not.toContain(work.runId)
  // Nor one that waits already when it is looked at again.
  const next = await server.startRun(scene.his, { taskId: key }, scene.he.token)
  const gateOf = async (runId: string) => (await server.ok(`/runs/${runId}`, { token: scene.he.token })).gateReason
  expect(await gateOf(next)).toBe('task_locked')
  expect(await gateOf(held)).toBe('task_locked')
  await work.end()
  await quiet(server)
  const second = await scene.device.take()
  expect(second.runId).toBe(next)
  await second.end()
  expect([await gateOf(held), await gateOf(also)]).toEqual(['governance_refused', 'governance_refused'])
  await scene.device.disconnect()
})
