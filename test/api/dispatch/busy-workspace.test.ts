import { idFrom, type AgentRef, type DeviceRef, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../control-plane/db/open.ts'
import { acquireAdvisoryLocks } from '../../../control-plane/db/advisory-locks.ts'
import { silentLog, type Log } from '../../../control-plane/process/log.ts'
import { requestWake } from '../../../control-plane/run/wakes/wakes.ts'
import type { IngestItem } from '../../../control-plane/link/ingest-item.ts'
import { closeCodes } from '../../../shared/device/limits.ts'
import type { ServerMessage } from '../../../shared/device/protocol.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { hasPostgres } from '../../kit/database.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { task } from '../resources/tasks-kit.ts'

// The turn of one workspace is not to be had, as when its writes queue up: the others on the same replica notice nothing, and
// its own work comes through in order once the turn is free. A write may take longer here than any test waits for an answer,
// so that whatever stood behind the busy workspace would be missed.

const writeMs = 45_000
/** Messages of errors that the server logged. */
const errors: string[] = []
const log: Log = { ...silentLog, error: (_, message) => void errors.push(message), child: () => log }
let server: TestServer
/** The owner of the workspace whose turn is held; the other workspace is that of the server's owner. */
let busy: Person
beforeEach(async () => {
  if (!hasPostgres()) return
  errors.splice(0)
  const settings = { SVC_WRITE_TIMEOUT_MS: String(writeMs) }
  server = await TestServer.start({ database: 'postgres', settings, log })
  busy = await server.addPerson('owner', 'busy')
})
afterEach(async () => {
  if (hasPostgres()) await server?.stop()
})

/** Does it while another process, as a replica would, has the turn of the busy workspace. */
async function whileBusy(act: () => Promise<void>): Promise<void> {
  const replica = openDatabase({ url: server.database.url!, poolSize: 1 })
  try {
    await replica.root.raw(acquireAdvisoryLocks([busy.workspaceId]))
    await act()
  } finally {
    await replica.close()
  }
}

const accepting = { accepting: true, reason: null, message: null, activeRuns: 0 }
const text = (said: string) => ({ kind: 'text', data: { text: said } }) as const
const statusOf = async (runId: string, token?: string) =>
  (await server.ok(`/runs/${runId}`, token === undefined ? {} : { token })).status as string

/** A device of the person with a run at work. */
async function atWork(token?: string): Promise<{ device: FakeDevice; run: FakeRun }> {
  const agent = await server.createAgent({}, token)
  const device = await FakeDevice.connect(server, token === undefined ? {} : { token })
  await server.startRun(agent.id, {}, token)
  return { device, run: await device.take() }
}

describe.skipIf(!hasPostgres())('what devices send', () => {
  test('is stored while an ending of a busy workspace waits, which comes through after that', async () => {
    const [held, free] = [await atWork(busy.token), await atWork()]
    const beside = await atWork(busy.token)
    await held.run.events(text('one'))
    let last: Promise<void> = Promise.resolve()
    await whileBusy(async () => {
      last = held.run.events(text('two'))
      held.device.send(held.run.ending('completed'))
      await free.run.events(text('one'), text('two'))
      await free.run.end()
      // Events alone are not decided upon, so they are stored for the busy workspace, too.
      await beside.run.events(text('one'))
      expect(await statusOf(free.run.runId)).toBe('succeeded')
      expect(await statusOf(held.run.runId, busy.token)).toBe('running')
    })
    await last
    await held.device.next('run.closed')
    expect(await statusOf(held.run.runId, busy.token)).toBe('succeeded')
    const { data } = await server.ok(`/runs/${held.run.runId}/events`, { token: busy.token })
    expect(data.map((event: { data: { text: string } }) => event.data.text)).toEqual(['one', 'two'])
    await beside.run.end()
    expect(await statusOf(beside.run.runId, busy.token)).toBe('succeeded')
  })

  test('that came together with endings of a busy workspace does not hold the turns of others', async () => {
    const [held, free] = [await atWork(busy.token), await atWork()]
    const said: Record<string, string[]> = { held: [], free: [] }
    const item = (name: string, run: FakeRun, device: FakeDevice, workspaceId: WorkspaceUuid): IngestItem => {
      const { report } = run.ending('completed') as { report: Extract<IngestItem, { kind: 'ended' }>['report'] }
      const send = ({ type }: ServerMessage) => void said[name]?.push(type)
      const from = {
        device: idFrom<DeviceRef>(device.identity.publicId),
        workspaceId,
        send,
        giveUp: () => void said[name]?.push('given up'),
      }
      return { kind: 'ended', runId: run.runId, fence: run.fence, report, ...from }
    }
    const { ingest } = server.plane
    let stored: Promise<void> = Promise.resolve()
    await whileBusy(async () => {
      // In one tick, so they are taken together.
      const ofFree = ingest.push(item('free', free.run, free.device, server.owner.workspaceId))
      stored = ingest.push(item('held', held.run, held.device, busy.workspaceId))
      await server.createAgent()
      await ofFree
      expect(said).toEqual({ held: [], free: ['run.closed'] })
    })
    await stored
    expect(said['held']).toEqual(['run.closed'])
  })

  test('is stored while somebody holds the row of a run for long', async () => {
    const [held, free] = [await atWork(busy.token), await atWork()]
    const holder = await server.database.root.transaction()
    await holder('runs').where({ id: held.run.runId }).forUpdate()
    const stored = held.run.events(text('one'))
    await free.run.events(text('one'))
    await free.run.end()
    await holder.rollback()
    await stored
    await held.run.end()
    expect(await statusOf(held.run.runId, busy.token)).toBe('succeeded')
  })

  test('holds no turn while it waits for a row, as for one that another replica still writes', async () => {
    const held = await atWork(busy.token)
    const holder = await server.database.root.transaction()
    await holder('runs').where({ id: held.run.runId }).forUpdate()
    const stored = held.run.events(text('one'))
    await expect.poll(() => errors).toContain('events were not stored')
    await server.createAgent({}, busy.token)
    await holder.rollback()
    await stored
    await held.run.end()
    expect(await statusOf(held.run.runId, busy.token)).toBe('succeeded')
  })
})

describe.skipIf(!hasPostgres())('what a busy workspace waits for in vain', () => {
  test('costs its own devices their links, which send it again', async () => {
    await server.stop()
    server = await TestServer.start({ database: 'postgres', settings: { SVC_WRITE_TIMEOUT_MS: '300' } })
    // Between its attempts it waits for seconds.
    server.world.sleep = () => Promise.resolve()
    busy = await server.addPerson('owner', 'busy')
    const [held, free] = [await atWork(busy.token), await atWork()]
    await whileBusy(async () => {
      held.device.send(held.run.ending('completed'))
      await free.run.events(text('one'))
      expect(await held.device.closed).toBe(closeCodes.going_away.code)
      await free.run.events(text('two'))
    })
    await free.run.end()
    const { runId, fence } = held.run
    const hello = { runs: [{ runId, fence, state: 'ended' as const, lastSeq: 0 }] }
    const again = await FakeDevice.connect(server, { identity: held.device.identity, hello })
    again.send(held.run.ending('completed'))
    await again.next('run.closed')
    expect(await statusOf(runId, busy.token)).toBe('succeeded')
  })
})

describe.skipIf(!hasPostgres())('while the turn of a workspace is not to be had, in another one', () => {
  test('agents are woken', async () => {
    const [ofBusy, ofFree] = [await server.createAgent({}, busy.token), await server.createAgent()]
    const [held, free] = [await FakeDevice.connect(server, { token: busy.token }), await FakeDevice.connect(server)]
    const wake = async (agentId: AgentRef, workspaceId: WorkspaceUuid) => {
      const asked = {
        agentRef: agentId,
        workspaceId,
        triggerSource: 'channel_message',
        causedByUuid: null,
        wordsBy: [],
        requestedByRef: null,
      } as const
      const { root } = server.database
      await root.transaction((tx) => requestWake(tx, { ...asked, prompt: 'Hello.' }, server.world))
      server.plane.bus.poke()
    }
    await whileBusy(async () => {
      await wake(ofBusy.id, busy.workspaceId)
      await wake(ofBusy.id, busy.workspaceId)
      await wake(ofFree.id, server.owner.workspaceId)
      await (await free.take()).end()
      expect(held.pending).not.toContain('run.offer')
    })
    const runs = [await held.take(), await held.take()]
    for (const run of runs) await run.end()
    const { data } = await server.ok('/runs', { token: busy.token })
    expect(data).toHaveLength(2)
  })

  test('waiting runs are offered', async () => {
    const [ofBusy, ofFree] = [await server.createAgent({}, busy.token), await server.createAgent()]
    const hello = { claimState: { ...accepting, accepting: false } }
    const held = await FakeDevice.connect(server, { token: busy.token, hello })
    const free = await FakeDevice.connect(server, { hello })
    const runs = [await server.startRun(ofBusy.id, {}, busy.token), await server.startRun(ofFree.id)] as const
    await whileBusy(async () => {
      held.send({ type: 'heartbeat', claimState: accepting })
      await held.next('heartbeat.ack')
      for (const runId of runs) server.plane.dispatcher.runQueued(runId)
      free.send({ type: 'heartbeat', claimState: accepting })
      const run = await free.take()
      expect(run.runId).toBe(runs[1])
      await run.end()
      expect(held.pending).not.toContain('run.offer')
    })
    const run = await held.take()
    expect(run.runId).toBe(runs[0])
    await run.end()
  })

  test('sweeps do their work', async () => {
    const begin = server.world.now()
    const startIn = (seconds: number) => ({ startAt: new Date(begin + seconds * 1_000).toISOString() })
    const [ofBusy, ofFree] = [await server.createAgent({}, busy.token), await server.createAgent()]
    const [held, free] = [await FakeDevice.connect(server, { token: busy.token }), await FakeDevice.connect(server)]
    for (let count = 0; count < 2; count++) await task(server, { assignee: ofBusy.id, ...startIn(30) }, busy.token)
    for (const seconds of [30, 60]) await task(server, { assignee: ofFree.id, ...startIn(seconds) })
    await whileBusy(async () => {
      server.world.advance(30_000)
      await (await free.take()).end()
      // The next round, while the one before still waits for the turn.
      server.world.advance(30_000)
      await (await free.take()).end()
      expect(held.pending).not.toContain('run.offer')
    })
    for (let count = 0; count < 2; count++) await (await held.take()).end()
    expect((await server.ok('/runs', { token: busy.token })).data).toHaveLength(2)
  })
})
