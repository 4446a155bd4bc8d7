import { afterEach, beforeEach, expect, test } from 'vitest'
import { createClient } from '../../cli/http/client.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { refusal, startApi, stream } from './api-server.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

const eventsPath = `/api/v1/runs/${runId}/events`
let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const message = (seq: number, kind = 'text') => ({
  id: `c${seq}`,
  event: kind,
  data: JSON.stringify({ seq, kind, data: {} }),
})
const run = (status: string, more: Record<string, unknown> = {}) => ({ body: { id: runId, status, ...more } })

test('a stream that is cut is opened again after the last event: none is missed, none comes twice', async () => {
  const env = await home.inRun(({ path }, before) => {
    if (path !== eventsPath) return run('running')
    if (before === 0) return stream([message(1), message(2)], 'cut')
    if (before === 1) return refusal(503, 'database_unavailable')
    if (before === 2) return stream([message(3)], 'end')
    return stream([message(4, 'ended')], 'open')
  })
  const end = await home.svc(['run', 'events', 'current', '--follow'], { env })
  expect(end.status).toBe(0)
  expect(
    end.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { seq: number }).seq),
  ).toEqual([1, 2, 3, 4])
  const opened = home.api.received.filter((call) => call.path === eventsPath)
  expect(opened.map((call) => call.headers['last-event-id'])).toEqual([undefined, 'c2', 'c2', 'c3'])
  expect(opened[0]!.headers.accept).toBe('text/event-stream')
})

test('events are printed as they come', async () => {
  const env = await home.inRun(() => stream([message(1), message(2)], 'open'))
  const running = home.start(['run', 'events', 'current', '--follow'], { env })
  const lines = await running.lines(2)
  expect(lines.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual([1, 2])
  running.child.kill('SIGINT')
  await running.finished
})

test('a run that ended without an event is over; what was stored meanwhile is still read', async () => {
  const env = await home.inRun(({ path }, before) => {
    if (path !== eventsPath) return run('cancelled')
    return stream(before === 0 ? [] : [message(1)], 'end')
  })
  const end = await home.svc(['run', 'events', 'current', '--follow', '--after', 'c0'], { env })
  expect(end).toMatchObject({ status: 0, stdout: '{"seq":1,"kind":"text","data":{}}\n' })
  expect(home.api.received[0]!.headers['last-event-id']).toBe('c0')
})

test('what the server refuses ends following at once', async () => {
  const env = await home.inRun(() => refusal(404, 'resource_not_found'))
  expect((await home.svc(['run', 'events', 'current', '--follow'], { env })).status).toBe(1)
  expect(home.api.received).toHaveLength(1)
  expect((await home.svc(['run', 'events', 'current', '--follow', '--sort', 'desc'], { env })).status).toBe(2)
})

test.each([
  ['succeeded', 0],
  ['failed', 6],
  ['cancelled', 7],
])('run create --wait prints the run at its end and tells by the status that it %s', async (status, expected) => {
  const env = await home.inRun(({ method, path }) => {
    if (method === 'POST') return { body: { kind: 'queued', runPublicId: runId } }
    return path === eventsPath ? stream([message(1, 'ended')], 'end') : run(status, { errorMessage: 'why' })
  })
  const end = await home.svc(['run', 'create', '--agent', '@b', '--prompt', 'x', '--wait', '60000'], { env })
  expect(end.status).toBe(expected)
  expect(JSON.parse(end.stdout)).toMatchObject({ id: runId, status })
})

test('run create --wait: another run that took the wake is waited for; status 5 when the time is over, 8 when no run came', async () => {
  let wake: Record<string, unknown> = { kind: 'coalesced', coalescedIntoRunPublicId: runId }
  const env = await home.inRun(({ method, path }) => {
    if (method === 'POST') return { body: wake }
    return path === eventsPath ? stream([message(1)], 'open') : run('queued', { gateDescription: 'No device.' })
  })
  const line = ['run', 'create', '--agent', '@b', '--prompt', 'x', '--wait']
  const late = await home.svc([...line, '400'], { env })
  expect(late.status).toBe(5)
  expect(JSON.parse(late.stdout)).toMatchObject({ status: 'queued' })
  expect(late.stderr).toContain('No device.')
  wake = { kind: 'not_dispatched', reason: 'agent_inactive', message: 'It sleeps.' }
  const none = await home.svc(line, { env })
  expect(none.status).toBe(8)
  expect(none.stdout).toBe(`${JSON.stringify(wake)}\n`)
  expect((await home.svc([...line, '86400001'], { env })).status).toBe(2)
  // Without --wait, too, and by the other command.
  for (const other of [line.slice(0, -1), ['agent', 'run', '@b', '--prompt', 'x']]) {
    const unasked = await home.svc(other, { env })
    expect([unasked.status, unasked.stdout]).toEqual([8, `${JSON.stringify(wake)}\n`])
    expect(unasked.stderr).toContain('no run came of this: It sleeps.')
    wake = { kind: 'queued', runPublicId: runId }
    expect((await home.svc(other, { env })).status).toBe(0)
    wake = { kind: 'not_dispatched', reason: 'agent_inactive', message: 'It sleeps.' }
  }
})

test('run create --wait says at once why the run waits, and Ctrl-C that the run goes on', async () => {
  const env = await home.inRun(({ method, path }) => {
    if (method === 'POST') return { body: { kind: 'pending', runPublicId: runId, gateReason: 'device_unavailable' } }
    return path === eventsPath
      ? stream([message(1)], 'open')
      : run('queued', { gateDescription: 'No device is there.' })
  })
  const running = home.start(['run', 'create', '--agent', '@b', '--prompt', 'x', '--wait', '60000'], { env })
  await expect.poll(() => home.api.received.some(({ path }) => path === eventsPath)).toBe(true)
  const killedBy = new Promise((resolve) => running.child.on('exit', (_, signal) => resolve(signal)))
  running.child.kill('SIGINT')
  const { stderr, stdout } = await running.finished
  expect(await killedBy).toBe('SIGINT')
  expect(stdout).toBe('')
  expect(stderr).toContain('it waits: No device is there.')
  expect(stderr).toContain(`${runId} goes on. Follow it with \`svc run watch ${runId}\``)
})

test('run read prints the answer alone; --full all that happened, over all pages', async () => {
  const event = (seq: number, kind: string, data: unknown) => ({ seq, kind, data })
  const env = await home.inRun(({ path, query }) => {
    if (path !== eventsPath) {
      const asked = query.get('expand[]') === 'transcriptRead'
      return run('succeeded', asked ? { transcriptRead: { finalAnswer: 'Done.', isError: false, eventCount: 4 } } : {})
    }
    return query.get('after') === null
      ? {
          body: {
            object: 'list',
            data: [event(1, 'text', { text: 'Hel' }), event(2, 'text', { text: 'lo' })],
            hasMore: true,
            nextCursor: 'n',
          },
        }
      : {
          body: {
            object: 'list',
            data: [
              event(3, 'tool_call', { name: 'Bash', input: { c: 1 } }),
              event(4, 'ended', { exitReason: 'completed' }),
            ],
            hasMore: false,
            nextCursor: null,
          },
        }
  })
  expect(await home.svc(['run', 'read', 'current'], { env })).toEqual({ status: 0, stdout: 'Done.\n', stderr: '' })
  const full = await home.svc(['run', 'read', 'current', '--full'], { env })
  expect(full.stdout).toBe('Hello\n[tool] Bash {"c":1}\n[ended] completed\n')
})

test.each([
  ['failed', { errorMessage: 'The machine went down.' }, 'the run failed: The machine went down.'],
  ['cancelled', { exitReason: 'interrupted' }, 'the run was cancelled: interrupted'],
  ['running', {}, 'the run is running'],
  ['queued', { gateDescription: 'Its device is away.' }, 'the run is queued: Its device is away.'],
  ['succeeded', { waitingOn: { label: 'Which one?' } }, 'the run ended to wait for a person: Which one?'],
  ['succeeded', { isError: true }, 'the agent called this an error.'],
  ['succeeded', { errorMessage: 'Its permissions did not allow it.' }, 'Its permissions did not allow it.'],
  ['succeeded', { finalAnswer: null }, 'the run has given no answer.'],
] as const)(
  'run read says of a run that is %s (%j): %s',
  async (status, { ...more }: Record<string, unknown>, said) => {
    const { isError = status === 'failed', finalAnswer = 'Working.', ...fields } = more
    const env = await home.inRun(() =>
      run(status, { ...fields, transcriptRead: { finalAnswer, isError, eventCount: 4 } }),
    )
    const stdout = finalAnswer === null ? '' : 'Working.\n'
    expect(await home.svc(['run', 'read', 'current'], { env })).toEqual({ status: 0, stdout, stderr: `svc: ${said}\n` })
  },
)

test('within a run a server that restarts is waited for; a person is told at once', async () => {
  const { url } = await closedServer()
  const session = { server: url, token: 't', workspaceId: null, ownWorkspaceId: null }
  let sleeps = 0
  const world: World = {
    ...realWorld,
    // The server comes back while the client waits after its second refusal.
    async sleep() {
      sleeps++
      if (sleeps === 2) await home.serve(() => ({ body: { ok: true } }), Number(new URL(url).port))
    },
  }
  const person = createClient({ ...session, source: 'login' }, world)
  await expect(person.call({ method: 'GET', path: '/x' })).rejects.toMatchObject({ code: 'cli.server_refuses' })
  expect(sleeps).toBe(0)
  const agent = createClient({ ...session, source: 'run' }, world)
  expect((await agent.call({ method: 'POST', path: '/x' })).body).toEqual({ ok: true })
  expect(sleeps).toBe(2)
  expect(home.api.received).toHaveLength(1)
})

async function closedServer(): Promise<{ url: string }> {
  const server = await startApi(() => ({ body: {} }))
  await server.close()
  return server
}

test('nothing that an agent or a server says steers the terminal; colours pass', async () => {
  const clipboard = '\u001b]52;c;cm0gLXJmIH4K\u0007'
  const event = (seq: number, kind: string, data: unknown) => ({ seq, kind, data })
  const env = await home.inRun(({ path }) => {
    if (path === '/api/v1/agents') return refusal(404, 'not_found', { message: `${clipboard}gone\u009b2J` })
    const data = [
      event(1, 'text', { text: `${clipboard}a\u001b[31mred\u001b[0m` }),
      event(2, 'text', { base64: Buffer.from('\u001b[2Jb\rc').toString('base64') }),
      event(3, 'tool_call', { name: `${clipboard}Bash`, input: { command: '\u009b2J' } }),
      event(4, 'tool_result', { output: `${clipboard}out`, isError: false }),
      event(5, 'ended', { exitReason: 'completed', message: clipboard }),
    ]
    return { body: { object: 'list', data, hasMore: false, nextCursor: null } }
  })
  const full = await home.svc(['run', 'read', 'current', '--full'], { env })
  expect(full.stdout).toBe(
    'a\u001b[31mred\u001b[0mb\nc\n[tool] Bash {"command":""}\n[result] out\n[ended] completed: \n',
  )
  const followed = await home.svc(['run', 'events', 'current', '--output', 'table'], { env })
  const refused = await home.svc(['agent', 'list', '--output', 'table'], { env })
  for (const text of [followed.stdout, refused.stderr]) expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(/\p{Cc}/u)
  expect(refused.stderr).toContain('gone')
  const json = await home.svc(['run', 'read', 'current', '--full', '--output', 'json'], { env })
  expect(json.stdout).toContain(String.raw`\u001b]52`)
  expect(json.stdout).toContain(String.raw`\u009b2J`)
})
