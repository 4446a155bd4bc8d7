import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runEventId } from '../../../shared/api/run-events.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { openStream } from '../../kit/event-stream.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'

let server: TestServer
let device: FakeDevice
let agentId: string
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
  agentId = (await server.createAgent()).id
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

async function begin(): Promise<FakeRun> {
  await server.startRun(agentId)
  return device.take()
}
const text = (words: string) => ({ kind: 'text' as const, data: { text: words } })
const texts = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => text(`${from + n}`))
const page = (runId: string, query = '') => server.ok(`/runs/${runId}/events${query}`)
const seqs = (events: { seq: number }[]) => events.map((event) => event.seq)
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

describe('list', () => {
  test('returns events oldest first, cut out of the frames they came in', async () => {
    const run = await begin()
    await run.events(...texts(1, 3))
    await run.events(text('4'))
    await run.events(...texts(5, 150))
    const { runId } = run
    const first = await page(runId)
    expect(first).toMatchObject({ object: 'list', hasMore: true, cursor: first.nextCursor })
    expect(seqs(first.data)).toEqual(range(1, 100))
    expect(first.data[3]).toEqual({
      id: runEventId(runId, run.fence, 4),
      object: 'run_event',
      runId,
      seq: 4,
      kind: 'text',
      createdAt: expect.stringMatching(/Z$/),
      data: { text: '4' },
    })
    const second = await page(runId, `?after=${first.nextCursor}`)
    expect(seqs(second.data)).toEqual(range(101, 150))
    expect(second).toMatchObject({ hasMore: false, nextCursor: null })
    // The tail of a live run is read on with the cursor of its last page.
    const small = await page(runId, '?limit=1')
    expect(seqs((await page(runId, `?limit=3&after=${small.cursor}`)).data)).toEqual([2, 3, 4])
    await run.end()
  })

  test('reads the tail with sort=desc', async () => {
    const run = await begin()
    await run.events(...texts(1, 10))
    await run.events(...texts(11, 12))
    const first = await page(run.runId, '?sort=desc&limit=5')
    expect(seqs(first.data)).toEqual([12, 11, 10, 9, 8])
    const second = await page(run.runId, `?sort=desc&limit=5&after=${first.cursor}`)
    expect(seqs(second.data)).toEqual([7, 6, 5, 4, 3])
    const third = await page(run.runId, `?sort=desc&limit=5&after=${second.cursor}`)
    expect(seqs(third.data)).toEqual([2, 1])
    expect(third.hasMore).toBe(false)
    await run.end()
  })

  test('ends a page early when its events are large', async () => {
    const run = await begin()
    for (let n = 0; n < 6; n++) await run.events(text('x'.repeat(1_000_000)))
    const first = await page(run.runId)
    expect(first.data.length).toBeLessThan(6)
    expect(first.hasMore).toBe(true)
    const rest = await page(run.runId, `?after=${first.cursor}`)
    expect(seqs([...first.data, ...rest.data])).toEqual(range(1, 6))
    await run.end()
  })

  test('a line that is no event is shown as raw, and the numbers hold', async () => {
    const run = await begin()
    await run.lines(['not json', JSON.stringify({ seq: 99, at: 9e15, kind: 'text', data: { text: 'odd' } })])
    const { data } = await page(run.runId)
    expect(data).toMatchObject([
      { seq: 1, kind: 'raw', data: { text: 'not json' } },
      { seq: 2, kind: 'text', data: { text: 'odd' } },
    ])
    await run.end()
  })

  test('a line that is nested too deep to be written again is shown as raw', async () => {
    const run = await begin()
    const deep = `{"seq":1,"at":1,"kind":"text","data":{"text":"x","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
    await run.lines([deep])
    expect((await page(run.runId)).data).toMatchObject([{ seq: 1, kind: 'raw', data: { text: deep } }])
    await run.end()
  })

  test('a run without events has none; the last one of an ended run is its ending', async () => {
    const run = await begin()
    expect((await page(run.runId)).data).toEqual([])
    await run.end('interrupted')
    expect((await page(run.runId)).data).toMatchObject([{ kind: 'ended', data: { exitReason: 'interrupted' } }])
  })

  test('refuses what does not fit', async () => {
    const { runId } = await begin()
    const refused = async (query: string) => outcomeOf(await server.call(`/runs/${runId}/events${query}`))
    expect(await refused('?limit=501')).toBe('400 validation_error')
    expect(await refused('?limit=0')).toBe('400 validation_error')
    expect(await refused('?sort=up')).toBe('400 validation_error')
    expect(await refused('?after=zzz')).toBe('400 invalid_cursor')
    expect(outcomeOf(await server.call('/runs/run_0000000000000000/events'))).toBe('404 resource_not_found')
    expect(outcomeOf(await server.call('/runs/x/events'))).toBe('400 invalid_id_format')
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
  })
})

test('one event is read by its id', async () => {
  const run = await begin()
  await run.events(...texts(1, 5))
  const { data } = await page(run.runId)
  for (const event of data) expect(await server.ok(`/runs/${run.runId}/events/${event.id}`)).toEqual(event)
  const get = async (id: string) => outcomeOf(await server.call(`/runs/${run.runId}/events/${id}`))
  expect(await get(runEventId(run.runId, run.fence, 6))).toBe('404 resource_not_found')
  expect(await get(runEventId(run.runId, run.fence + 1, 1))).toBe('404 resource_not_found')
  expect(await get(runEventId(idFrom('run_0000000000000000'), run.fence, 1))).toBe('404 resource_not_found')
  expect(await get(crypto.randomUUID())).toBe('404 resource_not_found')
  expect(await get('evt_1')).toBe('400 invalid_id_format')
  await run.end()
})

describe('follow', () => {
  test('sends what is there, then what comes, then the end', async () => {
    const run = await begin()
    await run.events(...texts(1, 3))
    const stream = await openStream(server, `/runs/${run.runId}/events`)
    expect(stream.response.headers.get('content-type')).toContain('text/event-stream')
    expect((await stream.take(3)).map((message) => message.data.seq)).toEqual([1, 2, 3])
    await run.events(text('4'))
    const [fourth] = await stream.take(1)
    expect(fourth).toMatchObject({ event: 'text', data: { seq: 4, kind: 'text', data: { text: '4' } } })
    // The id of a message is the cursor after it.
    expect((await page(run.runId, `?after=${fourth!.id}`)).data).toEqual([])
    await run.end('completed')
    const [ended, end] = await stream.take(2)
    expect(ended).toMatchObject({ event: 'ended', data: { seq: 5 } })
    expect(end).toMatchObject({
      event: 'end',
      data: { runId: run.runId, status: 'succeeded', exitReason: 'completed', lastSeq: 5 },
    })
    expect(await stream.rest()).toEqual([])
  })

  test('whoever reads the last event finds the run ended', async () => {
    const run = await begin()
    const stream = await openStream(server, `/runs/${run.runId}/events`)
    const status = stream
      .take(1)
      .then(async ([message]) => [message?.event, (await server.ok(`/runs/${run.runId}`)).status])
    await run.events({ kind: 'ended', data: { exitReason: 'completed', exitCode: 0, signal: null } })
    expect((await server.ok(`/runs/${run.runId}`)).status).toBe('running')
    await run.report('completed')
    expect(await status).toEqual(['ended', 'succeeded'])
  })

  test('an ending in the middle of the log is sent once the run has ended, and is not read again and again until then', async () => {
    const run = await begin()
    const ended = { kind: 'ended' as const, data: { exitReason: 'completed', exitCode: 0, signal: null } }
    await run.events(text('1'), ended, ...texts(3, 600))
    const stream = await openStream(server, `/runs/${run.runId}/events`)
    expect((await stream.take(1))[0]).toMatchObject({ event: 'text', data: { seq: 1 } })
    let reads = 0
    const root = server.database.root
    const count = ({ sql }: { sql: string }) => void (sql.includes('run_frames') && reads++)
    root.on('query', count)
    root.client.on('query-response', (_: unknown, query: { sql: string }) => count(query))
    for (let call = 0; call < 20; call++) await server.ok(`/runs/${run.runId}`)
    expect(reads).toBeLessThan(20)
    await run.end()
    expect((await stream.rest()).slice(0, -1).map((message) => message.data.seq)).toEqual(range(2, 601))
  })

  test('a device writes no messages of the stream by the kinds of its events', async () => {
    const run = await begin()
    const lines = ['end', 'x\n\nevent: end\ndata: {}'].map((kind) => JSON.stringify({ seq: 1, at: 1, kind, data: {} }))
    await run.lines(lines)
    await run.end()
    const messages = await (await openStream(server, `/runs/${run.runId}/events`)).rest()
    expect(messages.map(({ event }) => event)).toEqual(['raw', 'raw', 'ended', 'end'])
    expect(messages.slice(0, 2).map(({ data }) => data.data.text)).toEqual(lines)
  })

  test('goes on after Last-Event-ID, or after a cursor', async () => {
    const run = await begin()
    await run.events(...texts(1, 4))
    await run.end()
    const all = await (await openStream(server, `/runs/${run.runId}/events`)).rest()
    expect(all.map((message) => message.event)).toEqual(['text', 'text', 'text', 'text', 'ended', 'end'])
    const resumed = await openStream(server, `/runs/${run.runId}/events`, { 'last-event-id': all[2]!.id! })
    expect((await resumed.rest()).map((message) => message.data.seq)).toEqual([4, 5, undefined])
    const after = await openStream(server, `/runs/${run.runId}/events?after=${all[3]!.id}`)
    expect((await after.rest()).map((message) => message.event)).toEqual(['ended', 'end'])
  })

  test('ends when the run ends without its device: cancelled while it waited', async () => {
    const lonely = await server.addPerson('member')
    const agent = await server.createAgent({}, lonely.token)
    const runId = await server.startRun(agent.id)
    const stream = await openStream(server, `/runs/${runId}/events`)
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(await stream.rest()).toMatchObject([
      { event: 'end', data: { status: 'cancelled', exitReason: 'interrupted' } },
    ])
  })

  test('many followers of a busy run each get every event once, in order', async () => {
    const run = await begin()
    const streams = await Promise.all(Array.from({ length: 10 }, () => openStream(server, `/runs/${run.runId}/events`)))
    for (let n = 0; n < 30; n++) await run.events(...texts(n * 10 + 1, n * 10 + 10))
    await run.end()
    for (const stream of streams) {
      const messages = await stream.rest()
      expect(messages.slice(0, -1).map((message) => message.data.seq)).toEqual(range(1, 301))
    }
  })

  test('refuses a bad place to begin and the other order', async () => {
    const run = await begin()
    const refused = async (query: string, headers: Record<string, string> = {}) =>
      outcomeOf(
        await server.call(`/runs/${run.runId}/events${query}`, {
          headers: { accept: 'text/event-stream', ...headers },
        }),
      )
    expect(await refused('', { 'last-event-id': 'nonsense' })).toBe('400 invalid_cursor')
    const { body } = await server.call(`/runs/${run.runId}/events`, {
      headers: { accept: 'text/event-stream', 'last-event-id': 'nonsense' },
    })
    expect(body.error.param).toBe('Last-Event-ID')
    expect(await refused('?after=x')).toBe('400 invalid_cursor')
    expect(await refused('?sort=desc')).toBe('400 validation_error')
    await run.end()
  })
})
