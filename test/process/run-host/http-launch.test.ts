import { afterEach, expect, test } from 'vitest'
import type { Child } from '../../../device-manager/run-host/launch/child.ts'
import { httpLimits, launchOverHttp, type HttpLimits } from '../../../device-manager/run-host/launch/http.ts'

/** A program that serves HTTP, driven over its lines. It checks the password that it was given. */
const program = `
const http = require('node:http')
let events
const server = http.createServer((req, res) => {
  const right = 'Basic ' + Buffer.from('me:' + process.env.PASSWORD).toString('base64')
  if (req.headers.authorization !== right) return res.writeHead(401).end()
  if (req.url === '/events') { events = res; res.writeHead(200); res.write(': hello\\n\\n'); return }
  let body = ''
  req.on('data', (chunk) => (body += chunk)).on('end', () => {
    if (req.url === '/say') { for (const each of JSON.parse(body)) events.write(each); return res.end('{"said":true}') }
    if (req.url === '/last') { events.write('data: {"n":"last"}\\n\\n', () => process.exit(3)); return }
    if (req.url === '/cut') { events.destroy(); return }
    if (req.url === '/away') return res.writeHead(302, { location: '/say' }).end()
    if (req.url === '/long') return res.end('x'.repeat(5000))
    if (req.url === '/never') return
    res.end(JSON.stringify({ method: req.method, url: req.url, body, type: req.headers['content-type'] }))
  })
})
process.stdin.on('data', (text) => console.log('heard ' + String(text).trim())).on('end', () => process.exit(0))
server.listen(0, '127.0.0.1', () => console.log('serving at http://127.0.0.1:' + server.address().port + ' now'))
`

const children: Child[] = []
afterEach(async () => {
  for (const child of children.splice(0)) {
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It left by itself.
    }
    await child.closed
  }
})

function launch(code = program, limits: Partial<HttpLimits> = {}) {
  const lines: Record<string, unknown>[] = []
  const waiting: { is(line: Record<string, unknown>): boolean; found(): void }[] = []
  const child = launchOverHttp(
    {
      file: process.execPath,
      args: ['-e', code],
      env: {},
      cwd: '/',
      http: { events: '/events', user: 'me', passwordVariable: 'PASSWORD' },
      onOutput(chunk) {
        const line = JSON.parse(Buffer.from(chunk).toString()) as Record<string, unknown>
        lines.push(line)
        for (const wait of waiting) if (wait.is(line)) wait.found()
      },
      onStderr: () => {},
    },
    { ...httpLimits, ...limits },
  )
  children.push(child)
  const until = (is: (line: Record<string, unknown>) => boolean) =>
    new Promise<void>((found) => (lines.some(is) ? found() : waiting.push({ is, found })))
  const order = (...orders: object[]) => child.write(orders.map((each) => `${JSON.stringify(each)}\n`).join(''))
  const ask = async (id: number, path: string, body?: unknown) => {
    order({ id, method: 'POST', path, ...(body !== undefined && { body }) })
    await until((line) => answerOf(line)?.id === id)
    return lines.map(answerOf).find((answer) => answer?.id === id)
  }
  return { child, lines, until, order, ask }
}
const answerOf = (line: Record<string, unknown>) =>
  line['answer'] as { id: number; status: number; body: unknown } | undefined
const eventsOf = (lines: readonly Record<string, unknown>[]) =>
  lines.flatMap((line) => ('event' in line ? [line['event']] : []))
const isLost = (line: Record<string, unknown>) => 'lost' in line

test('orders wait until it listens; answers and events come as lines, and text goes to its standard input', async () => {
  const { lines, order, ask, until, child } = launch()
  order(
    { id: 1, method: 'POST', path: '/a?b=c', body: { d: 'ü' } },
    { id: 2, method: 'GET', path: '/e' },
    { stdin: 'you\n' },
  )
  await until((line) => answerOf(line)?.id === 2)
  await until((line) => line['stdout'] === 'heard you')
  const first = { method: 'POST', url: '/a?b=c', body: '{"d":"ü"}', type: 'application/json' }
  expect(lines.map(answerOf).find((answer) => answer?.id === 1)).toEqual({ id: 1, status: 200, body: first })
  expect(lines.filter((line) => 'listening' in line)).toHaveLength(1)
  expect(
    await ask(3, '/say', ['data: {"n":', '1}\r\n\r\n', 'event: x\ndata: {"n":\ndata: 2}\n\n', 'data: words\n\n']),
  ).toEqual({
    id: 3,
    status: 200,
    body: { said: true },
  })
  await until((line) => line['event'] === 'words')
  expect(eventsOf(lines)).toEqual([{ n: 1 }, { n: 2 }, 'words'])
  child.closeInput()
  expect(await child.closed).toEqual({ exitCode: 0, signal: null })
})

test('the password is of this run alone, and is not among its lines', async () => {
  const shown = `console.log('password ' + process.env.PASSWORD.length); ${program}`
  const [one, two] = [launch(shown), launch(shown)]
  for (const { until } of [one, two]) await until((line) => 'listening' in line)
  expect(one.lines).toContainEqual({ stdout: 'password 43' })
})

test('an event that was sent right before the end is not lost', async () => {
  const { lines, order, child } = launch()
  order({ id: 1, method: 'POST', path: '/last' })
  expect(await child.closed).toEqual({ exitCode: 3, signal: null })
  expect(eventsOf(lines)).toEqual([{ n: 'last' }])
})

test('an event that is nested too deep to be written again comes as its text', async () => {
  const { lines, until, order } = launch()
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  order({ id: 1, method: 'POST', path: '/say', body: [`data: ${deep}\n\n`, 'data: {"n":1}\n\n'] })
  await until(({ event }) => typeof event === 'object')
  expect(eventsOf(lines)).toEqual([deep, { n: 1 }])
})

test('events that end are told as lost, once, and nothing comes after', async () => {
  const { lines, until, order } = launch()
  order({ id: 1, method: 'POST', path: '/cut' }, { id: 2, method: 'POST', path: '/never' })
  await until(isLost)
  order({ id: 3, method: 'GET', path: '/e' }, { stdin: 'still\n' })
  await until((line) => line['stdout'] === 'heard still')
  expect(lines.filter((line) => isLost(line) || 'answer' in line)).toEqual([{ lost: expect.stringContaining('ended') }])
})

test.each([
  ['a server elsewhere', `console.log('at http://192.0.2.1:80/'); setTimeout(() => {}, 60_000)`, /not loopback/],
  [
    'a name that looks like loopback',
    `console.log('at http://127.0.0.1.example:80/'); setTimeout(() => {}, 60_000)`,
    /not loopback/,
  ],
  ['no server', `setTimeout(() => {}, 60_000)`, /in time/],
  ['a server that refuses the password', program.replace("'me:'", "'you:'"), /401/],
  [
    'an address where nobody serves',
    `console.log('at http://127.0.0.1:1/'); setTimeout(() => {}, 60_000)`,
    /could not be read/,
  ],
])('%s is told as lost', async (_, code, reason) => {
  const { lines, until } = launch(code, { startMs: 1_000 })
  await until(isLost)
  expect(lines.filter(isLost)).toEqual([{ lost: expect.stringMatching(reason) }])
  expect(lines.some((line) => 'listening' in line)).toBe(false)
})

test('redirects are not followed; what is too long, too late or too much is no answer', async () => {
  const { lines, ask, order, until } = launch(program, { answerBytes: 1_000, requestMs: 300, openRequests: 2 })
  await until((line) => 'listening' in line)
  expect(await ask(1, '/away')).toMatchObject({ status: 302 })
  expect(await ask(2, '/long')).toEqual({ id: 2, status: 0, body: 'the answer is too long' })
  order(...[3, 4, 5].map((id) => ({ id, method: 'POST', path: '/never' })))
  await until((line) => answerOf(line)?.id === 4)
  const late = lines.map(answerOf).filter((answer) => (answer?.id ?? 0) > 2)
  expect(late.map((answer) => [answer?.id, answer?.body])).toEqual([
    [5, 'too many requests'],
    [3, 'no answer in time'],
    [4, 'no answer in time'],
  ])
})

test('an event that is too long ends the events', async () => {
  const { lines, ask, until } = launch(program, { lineBytes: 1_000 })
  void ask(1, '/say', [`data: ${'x'.repeat(2_000)}\n\n`])
  await until(isLost)
  expect(lines.filter(isLost)).toEqual([{ lost: 'one of its events is too long' }])
  expect(eventsOf(lines)).toEqual([])
})

test('left alone it lets go of what it reads, though the program lives', async () => {
  const { child, until } = launch()
  await until((line) => 'listening' in line)
  process.kill(-child.pid, 'SIGKILL')
  child.abandon()
  expect(await child.closed).toEqual({ exitCode: null, signal: 'SIGKILL' })
})
