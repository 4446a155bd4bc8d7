import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { encodeFrame } from '../../../shared/device/frame.ts'
import { closeCodes, linkLimits } from '../../../shared/device/limits.ts'
import { openStream } from '../../kit/event-stream.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// A device, of an earlier release or one that lies, whose events are longer than a link takes.

let server: TestServer, device: FakeDevice, agentId: string, run: FakeRun
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
  agentId = (await server.createAgent()).id
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})
beforeEach(async () => {
  await server.startRun(agentId)
  run = await device.take()
})

const mebibyte = 1024 * 1024
const lineOf = (seq: number, chars: number) =>
  JSON.stringify({ seq, at: 5_000 + seq, kind: 'text', data: { text: 'x'.repeat(chars) } })
const frameOf = (lines: readonly string[], firstSeq: number) => {
  const body = Buffer.from(lines.map((line) => `${line}\n`).join(''))
  const sha256 = createHash('sha256').update(body).digest('hex')
  const lastSeq = firstSeq + lines.length - 1
  return encodeFrame({ type: 'run.events', runId: run.runId, fence: run.fence, firstSeq, lastSeq, sha256 }, body)
}
const page = (query = '') => server.ok(`/runs/${run.runId}/events${query}`)
const alarms = async () => {
  const text = await (await fetch(`${server.url}/metrics`)).text()
  return Number(/^svc_integrity_errors_total (\d+)/m.exec(text)?.[1])
}
const stored = () => server.database.root('run_frames').where({ run_id: run.runId })

test('a line of 14 MB is stored and shown as a declared gap, and the events around it stay', async () => {
  await run.lines([lineOf(1, 10), lineOf(2, 14 * mebibyte), lineOf(3, 10)])
  const { data } = await page()
  expect(data).toMatchObject([
    { seq: 1, kind: 'text' },
    { seq: 2, kind: 'gap', data: { bytes: lineOf(2, 14 * mebibyte).length, reason: 'event_too_long' } },
    { seq: 3, kind: 'text' },
  ])
  expect(data[1].createdAt).toBe(new Date(5_002).toISOString())
  const frames = await stored()
  expect(frames.map(({ body }: { body: Buffer }) => body.length < 1_000)).toEqual([true])
  const before = await alarms()
  // Its hash is over what it sent, which nobody has any more: that is no sign of a broken log.
  await run.end()
  expect(await server.ok(`/runs/${run.runId}`)).toMatchObject({ status: 'succeeded' })
  expect(await alarms()).toBe(before)
})

test('sent again, as a whole or in part, it is the same', async () => {
  const before = await alarms()
  const lines = [lineOf(1, 10), lineOf(2, 3 * mebibyte), lineOf(3, 10)]
  device.sendFrame(frameOf(lines, 1))
  expect((await device.next('ack')).seq).toBe(3)
  device.sendFrame(frameOf(lines, 1))
  expect((await device.next('ack')).seq).toBe(3)
  device.sendFrame(frameOf([...lines.slice(1), lineOf(4, 3 * mebibyte)], 2))
  expect((await device.next('ack')).seq).toBe(4)
  expect((await page()).data.map(({ kind }: { kind: string }) => kind)).toEqual(['text', 'gap', 'text', 'gap'])
  expect(await alarms()).toBe(before)
  await server.ok(`/runs/${run.runId}/cancel`, { body: {} })
})

test('one that was stored before there was a bound is read as a gap', async () => {
  await run.lines([lineOf(1, 10)])
  const long = Buffer.from(`${lineOf(1, 5 * mebibyte)}\n`)
  await stored().update({ body: long })
  expect((await page()).data).toMatchObject([{ seq: 1, kind: 'gap', data: { bytes: long.length - 1 } }])
  const stream = await openStream(server, `/runs/${run.runId}/events`)
  expect((await stream.take(1))[0]).toMatchObject({ event: 'gap' })
  stream.abort()
  await server.ok(`/runs/${run.runId}/cancel`, { body: {} })
})

test('of long events pages and streams give all, however many read at once', async () => {
  for (let seq = 1; seq <= 12; seq++) await run.lines([lineOf(seq, linkLimits.lineBytes - 200)])
  await run.end()
  const wanted = Array.from({ length: 13 }, (_, at) => at + 1)
  const readPages = async () => {
    const seqs: number[] = []
    for (let after = ''; ;) {
      const { data, nextCursor } = await page(after)
      seqs.push(...data.map(({ seq }: { seq: number }) => seq))
      if (nextCursor === null) return seqs
      after = `?after=${nextCursor}`
    }
  }
  const readStream = async () => {
    const stream = await openStream(server, `/runs/${run.runId}/events`)
    return (await stream.rest()).filter(({ event }) => event !== 'end').map(({ data }) => data.seq as number)
  }
  const all = await Promise.all([readPages(), readPages(), readStream(), readStream(), readStream()])
  expect(all).toEqual(all.map(() => wanted))
})

test('a message that is larger than any of an honest device closes the link', async () => {
  const liar = await FakeDevice.connect(server)
  liar.send({ ...run.ending('error'), padding: 'x'.repeat(linkLimits.messageBytes) } as never)
  expect(await liar.closed).toBe(closeCodes.frame_too_large.code)
  await server.ok(`/runs/${run.runId}/cancel`, { body: {} })
})
