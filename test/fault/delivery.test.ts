import { idFrom, type AgentRef, type RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mintRunToken } from '../../control-plane/http/run-token.ts'
import { encodeFrame } from '../../shared/device/frame.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import { hasPostgres } from '../kit/database.ts'
import { enrol, FakeDevice } from '../kit/fake-device.ts'
import { seededRandom, waitFor } from '../kit/programs.ts'
import { outcomeOf, TestServer } from '../kit/server.ts'

// Fault matrix, rows 29 to 33, at the control plane: what a device says twice, out of order, wrongly, or too late.

const report: EndReport = {
  exitReason: 'completed',
  exitCode: 0,
  signal: null,
  message: null,
  eventCount: 0,
  logHash: '',
  gapBytes: 0,
  usage: null,
  toolCallCount: null,
  sessionId: null,
  harnessVersion: null,
  forced: false,
}

/** Event lines as a device's spool holds them, from seq 1 on. */
function linesOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const data = { text: `line ${index + 1} of the log, with some ünïcode\n`.repeat(1 + (index % 3)) }
    return `${JSON.stringify({ seq: index + 1, at: 1_767_225_600_000 + index, kind: 'text', data })}\n`
  })
}

function frameOf(run: { runId: RunId; fence: number }, lines: readonly string[], firstSeq: number): Uint8Array {
  const body = Buffer.from(lines.join(''))
  return encodeFrame(
    {
      type: 'run.events',
      ...run,
      firstSeq,
      lastSeq: firstSeq + lines.length - 1,
      kinds: { text: lines.length },
      sha256: createHash('sha256').update(body).digest('hex'),
    },
    body,
  )
}

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    beforeAll(async () => {
      // An offer waits a fifth of a second instead of ten, so that a fence gets old soon.
      server = await TestServer.start({ database, settings: { SVC_OFFER_MS: '200' } })
    })
    afterAll(() => server.stop())

    const metric = async (name: string) => {
      const text = await (await fetch(`${server.url}/metrics`)).text()
      return text
        .split('\n')
        .reduce((sum, line) => (line.startsWith(name) ? sum + Number(line.split(' ').at(-1)) : sum), 0)
    }
    /** A device whose folder the agent works in, so that its runs come to no other. */
    const place = async (instance = crypto.randomUUID() as string) => {
      const device = await FakeDevice.connect(server, { hello: { instance } })
      const body = { displayName: crypto.randomUUID(), rootPath: '/repo', deviceId: device.identity.publicId }
      const folder = await server.ok('/folders', { body })
      const agent = await server.createAgent({ defaultFolderId: folder.shortId })
      return { device, agentId: agent.id as string }
    }
    const storedLines = async (runId: RunId) => {
      const events: { seq: number; data: unknown }[] = []
      for (let after = ''; ;) {
        const page = await server.ok(`/runs/${runId}/events?limit=500${after && `&after=${after}`}`)
        events.push(...page.data)
        if (!page.hasMore) return events
        after = encodeURIComponent(page.nextCursor)
      }
    }
    const expectStored = async (runId: RunId, lines: readonly string[]) => {
      const wanted = lines.map((line) => JSON.parse(line) as { seq: number; data: unknown })
      const stored = await storedLines(runId)
      expect(stored.map(({ seq, data }) => ({ seq, data }))).toEqual(wanted.map(({ seq, data }) => ({ seq, data })))
    }

    test('row 29: an acceptance that is said twice, or again after its answer was lost, is one start', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const run = await device.take()
      const { startedAt } = await server.ok(`/runs/${runId}`)
      device.send({ type: 'run.accepted', runId, fence: run.fence })
      expect(await device.next('run.start')).toMatchObject({ runId, fence: run.fence })
      // The link breaks before the start arrives; the device says what it holds.
      await device.disconnect()
      const back = await FakeDevice.open(server, device.identity, {
        runs: [{ runId, fence: run.fence, state: 'accepted', lastSeq: 0 }],
      })
      expect((await back.next('welcome')).runs).toEqual([{ runId, fence: run.fence, verdict: 'go_on', ackSeq: 0 }])
      expect(await back.next('run.start')).toMatchObject({ runId, fence: run.fence })
      expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'running', startedAt })
      expect(back.pending).not.toContain('run.offer')
    })

    test('row 29: an acceptance that was lost on its way counts when the device is back', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const { fence } = await device.next('run.offer')
      await device.disconnect()
      const back = await FakeDevice.open(server, device.identity, {
        runs: [{ runId, fence, state: 'accepted', lastSeq: 0 }],
      })
      const welcome = await back.next('welcome')
      const [verdict] = welcome.runs
      if (verdict?.verdict === 'go_on') expect(await back.next('run.start')).toMatchObject({ runId, fence })
      else {
        // The offer's time was over first: the run comes again with a higher fence.
        expect((await back.next('run.offer')).fence).toBeGreaterThan(fence)
      }
    })

    test(
      'row 30: frames duplicated, reordered, cut at every boundary, over several sockets',
      { timeout: 60_000 },
      async () => {
        const random = seededRandom('row 30')
        const instance = crypto.randomUUID()
        const { device, agentId } = await place(instance)
        const runId = await server.startRun(agentId)
        const run = await device.take()
        const lines = linesOf(300)
        let sockets: FakeDevice[] = [device]
        let acked = 0
        for (let round = 0; acked < lines.length; round++) {
          if (round % 7 === 6) {
            // The same daemon connects anew; what it still says over the old socket is late.
            const runs = [{ runId, fence: run.fence, state: 'live' as const, lastSeq: lines.length }]
            const next = await FakeDevice.open(server, device.identity, { instance, runs })
            acked = (await next.next('welcome')).runs[0]?.ackSeq ?? 0
            sockets = [...sockets.slice(-1), next]
            if (acked === lines.length) break
          }
          const newest = sockets.at(-1)!
          const frames = Array.from({ length: 6 }, () => {
            const from = Math.min(lines.length, Math.max(1, acked + 1 + Math.floor((random() - 0.5) * 20)))
            const to = Math.min(lines.length, from + Math.floor(random() * 12))
            return frameOf({ runId, fence: run.fence }, lines.slice(from - 1, to), from)
          })
          // One of them is sure to go on where the log is.
          frames.push(frameOf({ runId, fence: run.fence }, lines.slice(acked, acked + 5), acked + 1))
          for (const frame of frames) {
            if (sockets.length > 1 && random() < 0.3) sockets[0]!.sendFrame(frame)
            newest.sendFrame(frame)
            if (random() < 0.3) newest.sendFrame(frame)
          }
          const before = acked
          while (acked === before) acked = Math.max(acked, (await newest.next('ack')).seq)
        }
        await expectStored(runId, lines)
        expect(await metric('svc_integrity_errors_total')).toBe(0)
      },
    )

    test('row 31: other content under the same numbers is refused, raises an alarm, and the first stays', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const run = await device.take()
      const lines = linesOf(10)
      device.sendFrame(frameOf(run, lines.slice(0, 6), 1))
      expect((await device.next('ack')).seq).toBe(6)
      const before = await metric('svc_integrity_errors_total')
      const forged = lines.map((line) => line.replace('line', 'LINE'))
      // As a whole, and in the part that overlaps.
      device.sendFrame(frameOf(run, forged.slice(2, 5), 3))
      expect((await device.next('ack')).seq).toBe(6)
      device.sendFrame(frameOf(run, [...forged.slice(4, 6), ...lines.slice(6, 8)], 5))
      expect((await device.next('ack')).seq).toBe(8)
      expect(await metric('svc_integrity_errors_total')).toBe(before + 2)
      await expectStored(runId, lines.slice(0, 8))
      const kept = await server.database.root('run_evidence').where({ run_id: runId })
      expect(kept.map(({ reason }) => reason as string)).toEqual(['conflicting_content', 'conflicting_content'])
    })

    test('row 31: a frame that is not what its hash says is not stored', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const run = await device.take()
      const frame = frameOf(run, linesOf(3), 1)
      frame[frame.length - 5] = frame[frame.length - 5]! ^ 1
      device.sendFrame(frame)
      expect((await device.next('ack')).seq).toBe(0)
      expect(await storedLines(runId)).toEqual([])
    })

    test('row 32: behind a gap nothing is acknowledged, and an ending waits for what is missing', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const run = await device.take()
      const lines = linesOf(9)
      device.sendFrame(frameOf(run, lines.slice(0, 3), 1))
      expect((await device.next('ack')).seq).toBe(3)
      device.sendFrame(frameOf(run, lines.slice(5, 9), 6))
      expect((await device.next('ack')).seq).toBe(3)
      const { fence } = run
      device.send({ type: 'run.ended', runId, fence, report: { ...report, eventCount: 9 } })
      expect((await device.next('ack')).seq).toBe(3)
      expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'running' })
      device.sendFrame(frameOf(run, lines.slice(3, 9), 4))
      expect((await device.next('ack')).seq).toBe(9)
      device.send({ type: 'run.ended', runId, fence, report: { ...report, eventCount: 9 } })
      await device.next('run.closed')
      await expectStored(runId, lines)
      expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'succeeded' })
    })

    test('row 33: an old fence is refused on every message and route, and changes nothing', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const old = { runId, fence: (await device.next('run.offer')).fence }
      // Not answered: offered again, with a higher fence.
      const run = await device.take()
      expect(run.fence).toBeGreaterThan(old.fence)
      await run.events({ kind: 'text', data: { text: 'of the new lease' } })
      const before = await server.ok(`/runs/${runId}`)
      const refusals = await metric('svc_fence_refusals_total')

      device.send({ type: 'run.accepted', ...old })
      expect(await device.next('run.withdrawn')).toMatchObject(old)
      device.sendFrame(frameOf(old, linesOf(2), 1))
      expect(await device.next('run.refused')).toMatchObject({ ...old, reason: 'stale_fence' })
      device.send({ type: 'run.started', ...old, harnessStartedAt: 1 })
      device.sendChangeSet({ ...old, requestId: null }, { ok: false, code: 'too_large', message: 'of the old lease' })
      device.send({ type: 'run.ended', ...old, report: { ...report, exitReason: 'error' } })
      expect(await device.next('run.closed')).toMatchObject(old)
      device.send({ type: 'run.declined', ...old, reason: 'capacity', message: null })
      const { value } = await server.database.root('server_keys').where({ name: 'run_token' }).first()
      const { gen } = JSON.parse(Buffer.from(run.token.split('.')[1]!, 'base64url').toString())
      const subject = {
        ...old,
        agentRef: idFrom<AgentRef>(agentId),
        workspaceId: server.owner.workspaceId,
        tokenGeneration: gen,
      }
      const token = mintRunToken(Buffer.from(value, 'base64'), subject, server.world.now())
      for (const path of ['/agents/me', '/runs/current', '/runs/current/events'])
        expect(outcomeOf(await server.call(path, { token })), path).toBe('401 auth_revoked')
      expect(outcomeOf(await server.call('/runs/current/output', { token, body: { data: 1 } }))).toBe(
        '401 auth_revoked',
      )

      expect(await server.ok(`/runs/${runId}`)).toEqual(before)
      expect(outcomeOf(await server.call('/runs/current', { token: run.token }))).toBe('200')
      expect(await metric('svc_fence_refusals_total')).toBe(refusals + 3)
      await run.end()
      expect((await storedLines(runId)).map(({ seq }) => seq)).toEqual([1, 2])
    })

    test('row 33: the right fence from another device is refused as well', async () => {
      const { device, agentId } = await place()
      const runId = await server.startRun(agentId)
      const { fence } = await device.take()
      const other = await FakeDevice.connect(server, { identity: await enrol(server) })
      const refusals = await metric('svc_fence_refusals_total')
      other.sendFrame(frameOf({ runId, fence }, linesOf(2), 1))
      expect(await other.next('run.refused')).toMatchObject({ reason: 'stale_fence' })
      other.send({ type: 'run.ended', runId, fence, report })
      other.send({ type: 'run.accepted', runId, fence })
      expect(await other.next('run.withdrawn')).toMatchObject({ runId })
      await waitFor(async () => (await metric('svc_fence_refusals_total')) > refusals, 'the refusal is counted')
      expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'running' })
      expect(await storedLines(runId)).toEqual([])
    })
  })
