import { afterEach, beforeEach, expect, test } from 'vitest'
import { silentLog, type Log } from '../../../control-plane/process/log.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { movableWorld, TestServer, type MovableWorld } from '../../kit/server.ts'

// The lines of the log by which an operator follows a run.

interface Line {
  message: string
  runId?: string
  gate?: string
}

let server: TestServer
let world: MovableWorld
let lines: Line[]
beforeEach(async () => {
  lines = []
  world = movableWorld()
  const log: Log = {
    ...silentLog,
    info: (fields, message) => void lines.push({ message, ...fields }),
    child: () => log,
  }
  server = await TestServer.start({ log, world })
})
afterEach(() => server.stop())

const of = (runId: string) => lines.filter((line) => line.runId === runId)
const words = 'the words of a person'

test('each change of the state of a run is a line, with its ids, its reason and nothing that anybody wrote', async () => {
  const agent = await server.createAgent({ name: words, command: `echo ${words}` })
  const runId = await server.startRun(agent.id, { prompt: words })
  const device = await FakeDevice.connect(server)
  const run = await device.take()
  await run.end('error', { message: words })
  const ids = { runId, workspaceId: server.owner.workspaceId, agentId: agent.id }
  const held = { fence: 1, device: device.identity.publicId }
  expect(of(runId)).toEqual([
    { ...ids, message: 'run made', event: 'made', from: null, to: 'waiting', fence: 0, gate: 'no_device' },
    { ...ids, message: 'run offered', event: 'offered', from: 'waiting', to: 'offered', ...held },
    {
      ...ids,
      message: 'run claimed',
      event: 'claimed',
      from: 'offered',
      to: 'running',
      ...held,
      waitedMs: expect.any(Number),
    },
    {
      ...ids,
      message: 'run ended',
      event: 'ended_by_device',
      from: 'running',
      to: 'ended',
      ...held,
      exitReason: 'error',
    },
  ])
  expect(JSON.stringify(lines)).not.toContain(words)
})

test('an offer that is declined, a run that is told to end and one that is cancelled while it waits say so', async () => {
  const device = await FakeDevice.connect(server)
  const agent = await server.createAgent()
  const runId = await server.startRun(agent.id)
  const { fence } = await device.next('run.offer')
  device.send({ type: 'run.declined', runId, fence, reason: 'folder_missing', message: words })
  await expect
    .poll(() => of(runId).at(-1))
    .toMatchObject({ message: 'run offer taken back', from: 'offered', to: 'waiting', reason: 'folder_missing' })
  expect(of(runId).at(-1)).toMatchObject({ device: device.identity.publicId, fence: 1 })
  await server.ok(`/runs/${runId}/cancel`, { body: { reason: words } })
  expect(of(runId).at(-1)).toMatchObject({
    message: 'run ended',
    event: 'cancelled',
    from: 'waiting',
    exitReason: 'interrupted',
  })
  expect(of(runId).at(-1)).not.toHaveProperty('device')

  const accepting = { accepting: true, reason: null, message: null, activeRuns: 0 }
  device.send({ type: 'heartbeat', claimState: accepting })
  const second = await server.startRun(agent.id)
  const run = await device.take()
  await server.ok(`/runs/${second}/cancel`, { body: { reason: words } })
  expect(of(second).at(-1)).toMatchObject({
    message: 'run told to end',
    event: 'cancel_asked',
    from: 'running',
    to: 'stopping',
    exitReason: 'interrupted',
  })
  await run.end('interrupted')
  expect(of(second).at(-1)).toMatchObject({ message: 'run ended', from: 'stopping', exitReason: 'interrupted' })
  expect(JSON.stringify(lines)).not.toContain(words)
})

test('a sweep says once of a run that nothing holds it, and once what holds it again', async () => {
  const { sweeper } = server.plane
  const { deviceId } = await enrol(server)
  // Another replica has the link of the device.
  const link = (beatAt: number) =>
    server.database.root('devices').where({ device_id: deviceId }).update({
      last_heartbeat_at: beatAt,
      replica_id: 'another',
      claim_state: '{"accepting":true,"reason":null,"message":null,"activeRuns":0}',
    })
  await link(world.now())
  const runId = await server.startRun((await server.createAgent()).id)
  await sweeper.runAll()
  await sweeper.runAll()
  await link(world.now() - 600_000)
  await sweeper.runAll()
  await sweeper.runAll()
  expect(of(runId).map((line) => [line.message, line.gate])).toEqual([
    ['run made', undefined],
    ['run held by nothing', undefined],
    ['run held', 'no_device'],
  ])
})

test('what keeps a run for too long is named beside its end', async () => {
  const agent = await server.createAgent()
  const runId = await server.startRun(agent.id)
  world.advance(25 * 3_600_000)
  await server.plane.sweeper.runAll()
  expect(of(runId).slice(1)).toEqual([
    {
      message: 'run held too long',
      runId,
      workspaceId: server.owner.workspaceId,
      agentId: agent.id,
      gate: 'no_device',
    },
    expect.objectContaining({ message: 'run ended', event: 'waited_too_long', exitReason: 'gate_timeout' }),
  ])
})
