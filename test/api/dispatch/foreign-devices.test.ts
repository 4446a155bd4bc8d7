import { idFrom } from '../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { encodeFrame } from '../../../shared/device/frame.ts'
import { closeCodes } from '../../../shared/device/limits.ts'
import { endReport } from '../../kit/end-report.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// A device that speaks of runs and questions of another one, of its own workspace or of another.

let server: TestServer, device: FakeDevice, colleague: FakeDevice, stranger: FakeDevice
let runId: string
beforeEach(async () => {
  server = await TestServer.start()
  const [member, other] = [await server.addPerson('member'), await server.addPerson('owner', 'elsewhere')]
  device = await FakeDevice.connect(server)
  colleague = await FakeDevice.connect(server, { token: member.token })
  stranger = await FakeDevice.connect(server, { token: other.token })
  runId = await server.startRun((await server.createAgent()).id)
})
afterEach(() => server?.stop())

const root = () => server.database.root
/** Links answer in order: what was said before the beat is done when it is answered. */
async function heard(of: FakeDevice): Promise<void> {
  of.send({ type: 'heartbeat', claimState: { accepting: true, reason: null, message: null, activeRuns: 0 } })
  await of.next('heartbeat.ack')
}
const frameOf = (fence: number, body = Buffer.from('{"seq":1,"at":1,"kind":"text","data":{"text":"x"}}\n')) =>
  encodeFrame(
    {
      type: 'run.events',
      runId: idFrom(runId),
      fence,
      firstSeq: 1,
      lastSeq: 1,
      kinds: { text: 1 },
      sha256: createHash('sha256').update(body).digest('hex'),
    },
    body,
  )

test('an offer is answered by the device that it was made to', async () => {
  const { fence, ...offer } = await device.next('run.offer')
  expect(offer.runId).toBe(runId)
  for (const other of [colleague, stranger]) {
    other.send({ type: 'run.declined', runId: idFrom(runId), fence, reason: 'capacity', message: null })
    await heard(other)
    other.send({ type: 'run.accepted', runId: idFrom(runId), fence })
    await other.next('run.withdrawn')
  }
  device.send({ type: 'run.accepted', runId: idFrom(runId), fence })
  await device.next('run.start')
  for (const other of [colleague, stranger]) {
    // The start of a run that another one has taken would bring it the run's token and secrets.
    other.send({ type: 'run.accepted', runId: idFrom(runId), fence })
    await other.next('run.withdrawn')
    other.send({ type: 'run.started', runId: idFrom(runId), fence, harnessStartedAt: 1 })
    await heard(other)
  }
  const started = () => root()('runs').where({ id: runId }).first('harness_started_at', 'device')
  expect(await started()).toEqual({ harness_started_at: null, device: device.identity.publicId })
  device.send({ type: 'run.started', runId: idFrom(runId), fence, harnessStartedAt: 5 })
  await heard(device)
  expect(await started()).toMatchObject({ harness_started_at: 5 })
})

test('a run that a device was offered and has not taken is not ended by it, and nobody else waits for that', async () => {
  const { fence } = await device.next('run.offer')
  device.send({
    type: 'run.ended',
    runId: idFrom(runId),
    fence,
    report: endReport({ exitReason: 'completed', eventCount: 0 }),
  })
  await device.next('run.closed')
  expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'queued', exitReason: null })
  device.send({ type: 'run.accepted', runId: idFrom(runId), fence })
  await device.next('run.start')
})

test('a device that never held a run leaves nothing of it, and the one that holds it only so much', async () => {
  const run = await device.take()
  const evidence = (): Promise<{ device: string }[]> => root()('run_evidence').where({ run_id: runId }).select('device')
  stranger.sendFrame(frameOf(run.fence + 1))
  expect(await stranger.next('run.refused')).toMatchObject({ reason: 'run_unknown' })
  stranger.send(run.ending('error'))
  await stranger.next('run.closed')
  expect(await evidence()).toEqual([])
  for (const fence of [run.fence, run.fence + 1]) {
    colleague.sendFrame(frameOf(fence))
    expect(await colleague.next('run.refused')).toMatchObject({ reason: 'stale_fence' })
  }
  colleague.send(run.ending('error'))
  await colleague.next('run.closed')
  expect(await evidence()).toEqual([])
  // Its own, under a fence that is not the run's.
  for (let count = 0; count < 210; count++) device.sendFrame(frameOf(run.fence + 1))
  for (let count = 0; count < 210; count++) await device.next('run.refused')
  const kept = await evidence()
  expect(kept).toHaveLength(200)
  expect(kept[0]).toEqual({ device: device.identity.publicId })
  await run.end()
})

test('a device that has left much of other runs leaves no more', async () => {
  const run = await device.take()
  const { publicId } = device.identity
  const rows = Array.from({ length: 2_000 }, (_, at) => ({
    id: `e${at}`,
    run_id: `run_of_before${at % 20}`,
    fence: 1,
    device: publicId,
    reason: 'stale_fence',
    body: Buffer.from('x'),
    received_at: 1,
  }))
  for (let at = 0; at < rows.length; at += 50) await root()('run_evidence').insert(rows.slice(at, at + 50))
  const sent = async () => {
    device.sendFrame(frameOf(run.fence + 1))
    await device.next('run.refused')
    return root()('run_evidence').where({ run_id: runId })
  }
  expect(await sent()).toEqual([])
  await root()('run_evidence').where({ id: 'e0' }).delete()
  expect(await sent()).toHaveLength(1)
  await run.end()
})

test('an answer counts from the device that was asked, and is stored only when somebody asked', async () => {
  const { publicId: deviceId } = device.identity
  const { shortId } = await server.ok('/folders', { body: { displayName: 'here', rootPath: '/srv/here', deviceId } })
  const asked = server.ok(`/folders/${shortId}/git-remote`)
  const { requestId } = await device.next('folder.check')
  const missing = {
    rootPath: '/srv/here',
    state: 'missing' as const,
    realPath: null,
    isSymlink: false,
    writable: false,
    git: null,
    message: null,
  }
  const remotes = [{ name: 'origin', url: 'https://example.com/acme/web.git' }]
  const git = { topLevel: '/srv/here', branch: 'main', commit: null, remotes }
  const found = { ...missing, state: 'ok' as const, realPath: '/srv/here', writable: true, git }
  colleague.send({ type: 'folder.result', requestId, result: missing })
  colleague.send({ type: 'folder.result', requestId: crypto.randomUUID(), result: missing })
  await heard(colleague)
  colleague.sendChangeSet(
    { runId: idFrom(runId), fence: 1, requestId: crypto.randomUUID() },
    { ok: false, code: 'too_large', message: 'x' },
  )
  await heard(colleague)
  expect(await root()('device_replies').select()).toEqual([])
  device.send({ type: 'folder.result', requestId, result: found })
  expect(JSON.stringify(await asked)).toContain('acme/web')
})

test('a call that is nested too deep to be written ends the link that tells of it, and not the server', async () => {
  const run = await device.take()
  const toolArgs = { a: JSON.parse('['.repeat(3_000) + ']'.repeat(3_000)) as unknown }
  const call = { toolCallId: null, name: 'x', inputDigest: '0'.repeat(64), safeSummary: 's', toolArgs, prompt: 'p' }
  colleague.send(run.ending('approval_requested', { approvals: [call] }))
  expect(await colleague.closed).toBe(closeCodes.malformed_frame.code)
  const header = JSON.stringify({
    type: 'run.events',
    runId,
    fence: run.fence,
    firstSeq: 1,
    lastSeq: 1,
    sha256: '0'.repeat(64),
  })
  const deep = '['.repeat(30_000 - 1) + ']'.repeat(30_000 - 1)
  const head = Buffer.from(`${header.slice(0, -1)},"approvals":[${JSON.stringify(call).replace(/\[+\]+/, deep)}]}`)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  stranger.sendFrame(Buffer.concat([length, head]))
  expect(await stranger.closed).toBe(closeCodes.malformed_frame.code)
  await run.end()
})
