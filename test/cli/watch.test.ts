import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { refusal, stream, type Answer, type Received } from './api-server.ts'
import { onTerminal } from './on-terminal.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

const path = `/api/v1/runs/${runId}`
let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const message = (seq: number, kind: string, data: object) => ({
  id: `c${seq}`,
  event: kind,
  data: JSON.stringify({ seq, kind, data, createdAt: `2026-01-01T00:00:0${seq}.000Z` }),
})
const words = (seq: number, text: string) => message(seq, 'text', { text })
const ended = (seq: number) => message(seq, 'ended', { exitReason: 'completed', exitCode: 0, signal: null })
const run = (status: string, more: object = {}) => ({
  body: {
    id: runId,
    status,
    agent: { handle: '@builder' },
    harness: { id: 'claude' },
    environment: { type: 'device', deviceName: 'laptop' },
    startedAt: '2026-01-01T00:00:00.000Z',
    completedAt: '2026-01-01T00:01:05.000Z',
    waitingOn: null,
    costUsd: '0.42',
    ...more,
  },
})

/** A server with a run that ends as `last` says. */
const serving =
  (streams: Answer[], last: Answer, more: Record<string, Answer> = {}) =>
  (request: Received, before: number): Answer => {
    if (request.path === `${path}/events`) return streams[Math.min(before, streams.length - 1)]!
    if (request.path === path) return last
    return more[request.path] ?? refusal(404, 'not_found')
  }
const table = ['-o', 'table']

test('a run is shown as its agent works, to its end with time, cost and what it changed', async () => {
  const events = [
    words(1, 'I look. '),
    words(2, 'Here.'),
    message(3, 'tool_call', { toolCallId: 'a', name: 'Bash', input: { command: 'ls' } }),
    message(4, 'tool_result', { toolCallId: 'a', isError: false, output: 'a.txt' }),
    words(5, 'Done.'),
    message(6, 'result', { text: 'Done.', isError: false }),
    ended(7),
  ]
  const changes = { body: { files: [{ path: 'a.txt' }], additions: 3, deletions: 1 } }
  const env = await home.inRun(serving([stream(events, 'open')], run('succeeded'), { [`${path}/change-set`]: changes }))
  const end = await home.svc(['run', 'watch', 'current', ...table], { env })
  expect(end.stdout.split('\n')).toEqual([
    `${runId} · @builder · claude · laptop`,
    '',
    'I look. Here.',
    '',
    '● Bash ls 1.0s',
    '  a.txt',
    '',
    'Done.',
    '✓ succeeded in 1m 5s · $0.42 · 1 file changed (+3 -1)',
    `  svc run diff ${runId}`,
    '',
  ])
  expect(end.status).toBe(0)
})

test.each([
  ['failed', 6, { errorMessage: 'It broke.' }, ['✗ failed in 1m 5s · $0.42: It broke.', `  svc why ${runId}`]],
  ['cancelled', 7, { exitReason: 'interrupted' }, ['■ cancelled in 1m 5s · $0.42: interrupted']],
  [
    'succeeded',
    0,
    { waitingOn: { kind: 'question', id: 'qst_1', label: 'Which one?' } },
    ['? It waits for a person: Which one? · $0.42', '  - l: the left', '  svc question answer qst_1 "..."'],
  ],
  [
    'succeeded',
    0,
    { waitingOn: { kind: 'approval', id: 'apr_1', label: 'Bash' } },
    [
      '? It waits for a person: Bash · $0.42',
      '  svc approval get apr_1',
      '  svc approval approve apr_1',
      '  or: svc approval reject apr_1',
    ],
  ],
] as const)('a run that %s ends with %i and what can be done', async (status, code, more, last) => {
  const question = { body: { options: [{ key: 'l', label: 'the left' }] } }
  const env = await home.inRun(
    serving([stream([words(1, 'Hm.'), ended(2)], 'open')], run(status, more), { '/api/v1/questions/qst_1': question }),
  )
  const end = await home.svc(['run', 'watch', 'current', ...table], { env })
  expect(end.stdout.trimEnd().split('\n').slice(3)).toEqual(last)
  expect(end.status).toBe(code)
})

test('what holds a run is told once while it waits, and with it the command that helps', async () => {
  const why = {
    body: {
      state: 'waits',
      because: 'Its device is away.',
      next: 'It starts when the device is back.',
      command: 'svc device list',
    },
  }
  const env = await home.inRun(serving([stream([], 'open')], run('queued'), { [`${path}/why`]: why }))
  const watching = home.start(['run', 'watch', 'current', ...table], { env })
  const lines = await watching.lines(3)
  expect(lines.slice(1)).toEqual(['Its device is away. It starts when the device is back.', '  svc device list'])
  watching.child.kill('SIGINT')
  const { stderr } = await watching.finished
  expect(stderr).toContain(`${runId} goes on. Come back with \`svc run watch ${runId}\``)
})

test('a server that is away for a while is one line, however often it is asked', async () => {
  const away = refusal(503, 'database_unavailable')
  const streams = [stream([words(1, 'One, ')], 'cut'), away, away, away, stream([words(2, 'two.'), ended(3)], 'open')]
  const env = await home.inRun(serving(streams, run('succeeded')))
  const end = await home.svc(['run', 'watch', 'current', ...table], { env })
  expect(end.stdout.split('\n').slice(2, -2)).toEqual([
    'One, ',
    '… the server does not answer; svc waits for it',
    '',
    'two.',
  ])
})

test('while what holds the run cannot be asked, the run is followed all the same', async () => {
  const cut: Answer = (response) => void response.destroy()
  const waits = stream([], 'end')
  const streams = [waits, waits, waits, stream([words(1, 'Begun.'), ended(2)], 'open')]
  let reads = 0
  const env = await home.inRun((request, before) => {
    if (request.path === path) return ++reads > 4 ? run('succeeded') : run('queued')
    return serving(streams, run('queued'), { [`${path}/why`]: cut })(request, before)
  })
  const end = await home.svc(['run', 'watch', 'current', ...table], { env })
  expect(end.stdout).toContain('Begun.')
  expect([end.status, end.stderr]).toEqual([0, ''])
})

test('in a pipe each event is a line of JSON, and the exit status says how the run ended', async () => {
  const streams = [stream([words(1, 'Hm.')], 'cut'), refusal(503, 'database_unavailable'), stream([ended(2)], 'open')]
  const env = await home.inRun(serving(streams, run('failed')))
  const end = await home.svc(['run', 'watch', 'current'], { env })
  expect(
    end.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { seq: number }).seq),
  ).toEqual([1, 2])
  expect(end.status).toBe(6)
})

test('on a terminal `run create --wait` and `run events --follow` show the same, in colours', async () => {
  const wake = { status: 201, body: { kind: 'queued', runPublicId: runId } }
  const answer = serving([stream([words(1, 'Hello.'), ended(2)], 'open')], run('succeeded'))
  const { url } = await home.serve((request, before) => (request.method === 'POST' ? wake : answer(request, before)))
  mkdirSync(join(home.dir, 'config'), { recursive: true })
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server: url, token: 'svc_pat_x' }))
  for (const line of [
    ['run', 'create', '--agent', '@builder', '--prompt', 'Go.', '--wait'],
    ['run', 'events', runId, '--follow'],
  ]) {
    const { shown, ended: over } = onTerminal(home, line)
    expect(await over, shown.text).toBe(0)
    await waitFor(() => shown.text.includes('succeeded'), 'the last line')
    expect(shown.text).toContain(`\u001b[1m${runId} · @builder · claude · laptop\u001b[0m`)
    expect(shown.text).toContain('\r\nHello.\r\n\u001b[38;5;28m✓ succeeded in 1m 5s')
  }
})
