import { afterEach, beforeEach, expect, test } from 'vitest'
import { refusal, stream } from './api-server.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

const id = 'cnv_4yI8oP2cLhS6jB0d'
const path = `/api/v1/conversations/${id}/send`
let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

/** Serves, and returns what the environment of a person's program holds. */
async function asked(answer: Parameters<ServedHome['serve']>[0]): Promise<Record<string, string>> {
  return { SVC_TOKEN: 't', SVC_API_URL: (await home.serve(answer)).url }
}

const message = (n: number, event: string, data: object) => ({ id: `c${n}`, event, data: JSON.stringify(data) })
const posted = message(0, 'message', { id: 'msg_2kX5vB8nQwE1rT4y', body: 'Hello' })
const run = message(1, 'run', { runId, status: 'queued' })
const delta = (n: number, text: string) => message(n, 'delta', { runId, seq: n, text })
const done = message(9, 'done', { runId, status: 'succeeded', exitReason: 'completed', message: { body: 'Hi there.' } })

test('prints the words as they come, and the text is sent as it was typed', async () => {
  const env = await asked(() => stream([posted, run, delta(2, 'Hi '), delta(3, 'there.'), done], 'end'))
  const end = await home.svc(['conversation', 'send', id, 'Hello you', '--agent', '@builder', '--output', 'table'], {
    env,
  })
  expect(end).toMatchObject({ status: 0, stdout: 'Hi there.\n' })
  const [request] = home.api.received
  expect(request).toMatchObject({ method: 'POST', path, body: { body: 'Hello you', agentId: '@builder' } })
  expect(request!.headers).toMatchObject({ accept: 'text/event-stream', 'idempotency-key': expect.any(String) })
})

test('a stream that is cut goes on after its last message, with the same key', async () => {
  const env = await asked((_, before) => {
    if (before === 0) return stream([posted, run, delta(2, 'Hi ')], 'cut')
    if (before === 1) return refusal(503, 'database_unavailable')
    return stream([delta(3, 'there.'), done], 'end')
  })
  const end = await home.svc(['conversation', 'send', id, 'Hello'], { env })
  expect(end.status).toBe(0)
  const lines = end.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; data: { text?: string } })
  expect(lines.map(({ event, data }) => data.text ?? event)).toEqual(['message', 'run', 'Hi ', 'there.', 'done'])
  const { received: requests } = home.api
  expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'c2', 'c2'])
  expect(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
})

test('a reply that came without words on the way is printed from the message', async () => {
  const env = await asked(() => stream([posted, run, done], 'end'))
  const end = await home.svc(['conversation', 'send', id, 'Hello', '--output', 'table'], { env })
  expect(end).toMatchObject({ status: 0, stdout: 'Hi there.\n' })
})

test('a run that failed or was cancelled is told by the exit status', async () => {
  for (const [status, exit] of [
    ['failed', 6],
    ['cancelled', 7],
  ] as const) {
    const data = { runId, status, exitReason: 'x', error: { code: 'x', message: 'It broke.' }, message: null }
    const env = await asked(() => stream([posted, run, message(2, 'error', data)], 'end'))
    const end = await home.svc(['conversation', 'send', id, 'Hello', '--output', 'table'], { env })
    expect(end.status).toBe(exit)
    expect(end.stderr).toContain('It broke.')
    await home.api.close()
  }
})

test('what the server refuses is not tried again', async () => {
  const env = await asked(() => refusal(429, 'rate_limited'))
  const end = await home.svc(['conversation', 'send', id, 'Hello'], { env })
  expect(end.status).toBe(1)
  expect(end.stderr).toContain('rate_limited')
  expect(home.api.received).toHaveLength(1)
})

test('what cannot be sent at all is not tried again', async () => {
  const env = await asked(() => refusal(404, 'resource_not_found'))
  const end = await home.svc(['conversation', 'send', '', 'Hello'], { env })
  expect(end).toMatchObject({ status: 2, stderr: expect.stringContaining('is empty: it names nothing') })
  expect(home.api.received).toEqual([])
})
