import { isLong } from '../kit/forms.ts'
import { expect, test } from 'vitest'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { waitFor } from '../kit/programs.ts'
import { cloudServer, engineClient, hasNoEngine, leftOnEngine } from '../kit/sandboxes.ts'
import type { TestServer } from '../kit/server.ts'

const cloudAgent = async (server: TestServer, command: string) =>
  (await server.ok('/agents', {
    body: { name: 'Cloudy', harness: 'command', environment: 'cloud', toolPermissionMode: 'full', command },
  })) as { id: string }

const wake = async (server: TestServer, command: string): Promise<string> => {
  const agent = await cloudAgent(server, command)
  const answer = (await server.ok(`/agents/${agent.id}/runs`, { body: { prompt: 'go' } })) as { runPublicId: string }
  return answer.runPublicId
}

const ended = (server: TestServer, runId: string) =>
  waitFor(async () => {
    const run = (await server.ok(`/runs/${runId}`)) as Record<string, unknown>
    return run['completedAt'] === null ? null : run
  }, `the end of ${runId}`)

const eventsOf = async (server: TestServer, runId: string) =>
  ((await server.ok(`/runs/${runId}/events?limit=200`)) as { data: Event[] }).data

interface Event {
  seq: number
  kind: string
  data: { text?: string }
}

const textOf = async (server: TestServer, runId: string): Promise<string> =>
  (await eventsOf(server, runId)).map(({ kind, data: { text = '' } }) => (kind === 'text' ? text : '')).join('')

test.skipIf(hasNoEngine)(
  'a command runs in a sandbox without a network, acts as its agent, and leaves nothing behind',
  async () => {
    const server = await cloudServer()
    const look = [
      'id -u; pwd; touch /etc/x || echo read-only',
      "node -e \"require('net').connect(80, '192.0.2.1').on('error', (e) => console.log(e.code))\"",
      'svc whoami',
      'cat /run/svc/identity.json || echo no token',
    ].join('; ')
    const runId = await wake(server, look)
    expect(await ended(server, runId)).toMatchObject({
      status: 'succeeded',
      exitReason: 'completed',
      environment: { type: 'cloud', cwd: 'sandbox-root', deviceId: null, deviceName: null },
    })
    const text = await textOf(server, runId)
    expect(text).toContain(`1000\r\n${sandboxPlaces.work}/home\r\n`)
    expect(text).toContain('read-only')
    expect(text).toContain('ENETUNREACH')
    expect(text).toContain(`"runId":"${runId}"`)
    expect(text).toContain('no token')
    expect(await server.ok('/devices')).toMatchObject({ devices: [] })
  },
)

test.skipIf(hasNoEngine).each(isLong ? (['kill', 'remove'] as const) : (['kill'] as const))(
  'what a sandbox had not sent when it was lost is told by a second one (%s)',
  async (how) => {
    const server = await cloudServer()
    const runId = await wake(server, 'echo here; sleep 600')
    await waitFor(async () => (await textOf(server, runId)).includes('here'), 'its output')
    const [name] = await leftOnEngine(server)
    if (how === 'kill') await engineClient().does({ method: 'POST', path: `/containers${name}/kill` }, [204])
    else await engineClient().does({ method: 'DELETE', path: `/containers${name}`, query: { force: '1' } }, [204])
    const run = await ended(server, runId)
    expect(run).toMatchObject({ status: 'failed', exitReason: 'sandbox_lost' })
    expect(run['errorMessage']).toMatch(how === 'kill' ? /ended with status 137/ : /is gone/)
    const events = await eventsOf(server, runId)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    expect(events.at(-1)).toMatchObject({ kind: 'ended', data: { exitReason: 'sandbox_lost' } })
  },
)

test.skipIf(hasNoEngine)('a run that is cancelled ends in its sandbox', async () => {
  const server = await cloudServer()
  const runId = await wake(server, 'echo here; sleep 600')
  await waitFor(async () => ((await textOf(server, runId)).includes('here') ? true : null), 'its output')
  await server.ok(`/runs/${runId}/cancel`, { body: {} })
  expect(await ended(server, runId)).toMatchObject({ status: 'cancelled' })
})

test.skipIf(hasNoEngine)(
  'an admin sees a sandbox, reads what its runner wrote, and stops it with its run',
  async () => {
    const server = await cloudServer()
    const runId = await wake(server, 'echo here; sleep 600')
    await waitFor(async () => ((await textOf(server, runId)).includes('here') ? true : null), 'its output')
    const { data } = (await server.ok('/sandboxes')) as { data: { id: string }[] }
    const image = expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string
    expect(data).toMatchObject([{ runId, size: 'small', state: 'linked', image, trouble: null }])
    const { id } = data[0]!
    expect(await server.ok(`/runs/${runId}`)).toMatchObject({ sandbox: { id, size: 'small', image } })
    const { log } = (await server.ok(`/sandboxes/${id}/logs?lines=20`)) as { log: string }
    expect(log).toContain('link up')
    // The host that was started before the rest of the runner is its own.
    expect(log).not.toContain('dismissed')
    expect(log.trimEnd().split('\n').length).toBeLessThanOrEqual(20)
    const member = await server.addPerson('member')
    for (const [path, method] of [
      ['', 'GET'],
      [`/${id}/logs`, 'GET'],
      [`/${id}/stop`, 'POST'],
    ] as const)
      expect((await server.call(`/sandboxes${path}`, { method, token: member.token })).status).toBe(403)
    await server.ok(`/sandboxes/${id}/stop`, { method: 'POST' })
    expect(await ended(server, runId)).toMatchObject({ status: 'cancelled', exitReason: 'interrupted' })
    await waitFor(async () => ((await server.ok('/sandboxes')) as { data: [] }).data.length === 0, 'no sandbox')
    expect(await server.ok('/sandboxes?removed=true')).toMatchObject({ data: [{ id, state: 'removed' }] })
    expect((await server.call(`/sandboxes/${id}/logs`)).status).toBe(409)
  },
)

test.skipIf(hasNoEngine)('a run that has no memory left ends with its size, and the runner lives on', async () => {
  const server = await cloudServer({ settings: { SVC_SANDBOX_SMALL: '512/1/512/1024' } })
  const size = 'it ran out of memory (small, 0.5 GiB)'
  const byRunner =
    'The sandbox ran out of memory (small, 0.5 GiB): the kernel ended a process of the run. The command was killed by SIGKILL.'
  const seen: unknown[] = []
  // The kernel ends the runner as well where another page is asked for before the memory of the first process is given back (seen with
  // 6.18, at a high load): the sandbox is lost then, and says why. It is the exception.
  while (!seen.includes('error') && seen.length < 3) {
    const runId = await wake(server, 'node -e "const all = []; for (;;) all.push(Buffer.alloc(2e7, 1))"')
    const run = await ended(server, runId)
    const isLost = run['exitReason'] === 'sandbox_lost'
    expect(run).toMatchObject({
      status: 'failed',
      exitReason: isLost ? 'sandbox_lost' : 'error',
      errorMessage: isLost ? expect.stringContaining(`ended with status 137: ${size}`) : byRunner,
    })
    seen.push(run['exitReason'])
  }
  expect(seen).toContain('error')
})

test.skipIf(hasNoEngine)('a run whose volume holds more than its size allows ends, and says so', async () => {
  const server = await cloudServer({ settings: { SVC_SANDBOX_SMALL: '1024/1/512/64' } })
  const runId = await wake(server, 'head -c 100000000 /dev/zero >big; echo written; sleep 600')
  const run = await ended(server, runId)
  expect(run).toMatchObject({ status: 'failed', exitReason: 'error' })
  expect(run['errorMessage']).toMatch(
    /^The disk of the sandbox is full \(small\): its volume holds 0\.\d+ GiB of 0\.06 GiB\.$/,
  )
  expect(await textOf(server, runId)).toContain('written')
})

if (isLong)
  test.skipIf(hasNoEngine)('a run that only reads its programs again and again for want of memory ends', async () => {
    const server = await cloudServer({ settings: { SVC_SANDBOX_SMALL: '320/1/512/1024' } })
    const program = [
      "const fs = require('fs')",
      "const limit = Number(fs.readFileSync('/sys/fs/cgroup/memory/memory.limit_in_bytes', 'utf8'))",
      "const used = () => Number(/total_rss (\\d+)/.exec(fs.readFileSync('/sys/fs/cgroup/memory/memory.stat', 'utf8'))[1])",
      'const all = []',
      'const fill = () => { while (used() < limit * 0.94) all.push(Buffer.alloc(5e5, 1)) }',
      'const file = process.execPath; const size = fs.statSync(file).size; const fd = fs.openSync(file); const page = Buffer.alloc(4096)',
      'fill(); for (;;) fs.readSync(fd, page, 0, 4096, Math.floor(Math.random() * size))',
    ].join(';')
    const runId = await wake(server, `node -e "${program.replaceAll('"', '\\"').replaceAll('\\d', '\\\\d')}"`)
    const run = await ended(server, runId)
    // Where the kernel is faster it may end the runner, too.
    expect(['error', 'sandbox_lost']).toContain(run['exitReason'])
    expect(run['errorMessage']).toMatch(/ran out of memory \(small, 0\.31 GiB\)/)
  })

test.skipIf(hasNoEngine)(
  'what Node compiled when the image was built is good for all programs of a run, which cannot change it',
  async () => {
    const server = await cloudServer()
    const folder = sandboxPlaces.compiled
    const env = `NODE_DEBUG_NATIVE=COMPILE_CACHE NODE_COMPILE_CACHE=${folder}`
    const counted = `echo taken $(grep -c accepted told) spoilt $(grep -Ec 'rejected|mismatch|denied' told)`
    // None of them has what it needs, so each ends when it has loaded its sources.
    const programs = ['device-manager/main.js sandbox', 'device-manager/run-host/main.js', 'cli/main.js whoami']
    const told = programs.map((program) => `${env} node /opt/svc/${program} >told 2>&1; ${counted}`)
    const others = `find ${folder} ! -user root -o -perm /022 | wc -l; touch ${folder}/x || echo kept`
    const runId = await wake(server, [others, ...told].join('; '))
    await ended(server, runId)
    const text = await textOf(server, runId)
    expect(text).toMatch(/^0\r\n[^]*kept\r\n/)
    expect([...text.matchAll(/taken [1-9]\d* spoilt 0\r/g)]).toHaveLength(programs.length)
  },
)
