import { isLong } from '../kit/forms.ts'
import { expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { cloudServer, endedRun, hasNoEngine } from '../kit/sandboxes.ts'
import type { TestServer } from '../kit/server.ts'

// Runs that had no memory left, and those that go on with them in a larger sandbox.

const sizes = {
  SVC_SANDBOX_SMALL: '384/1/512/1024',
  SVC_SANDBOX_MEDIUM: '768/1/512/1024',
  SVC_SANDBOX_LARGE: '1024/1/512/1024',
}

const stage = async ({ oomResume = true } = {}) => {
  const server = await cloudServer({ settings: sizes })
  await server.ok(`/workspaces/${server.owner.workspaceId}`, { method: 'PATCH', body: { oomResume } })
  return server
}

const wake = async (server: TestServer, command: string, more: object = {}): Promise<string> => {
  const agent = { harness: 'command', environment: 'cloud', toolPermissionMode: 'full', command, ...more }
  const { id } = await server.createAgent(agent)
  return (await server.ok(`/agents/${id}/runs`, { body: { prompt: 'go' } })).runPublicId
}

const successorOf = (server: TestServer, runId: string) =>
  waitFor(async () => {
    const row = (await server.database.root('runs').where({ parent_run_id: runId }).first()) as
      | { id: string }
      | undefined
    return row?.id ?? null
  }, `the run that follows ${runId}`)

const textOf = async (server: TestServer, runId: string): Promise<string> => {
  const { data } = (await server.ok(`/runs/${runId}/events?limit=200`)) as { data: { data: { text?: string } }[] }
  return data.map(({ data: { text = '' } }) => text).join('')
}

const killed = 'node -e "const all = []; for (;;) all.push(Buffer.alloc(2e7, 1))"'
const v8 = 'node -e "const all = []; for (;;) all.push(new Array(1e4).fill(0).map(Math.random))"'
/** As V8 ends the runner: the container goes with it. */
const runner =
  'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null | grep -q "main.js [s]andbox" && kill -ABRT ${p#/proc/}; done; sleep 60'

const once = (command: string) => `if [ -e left ]; then echo found $(cat left); exit 0; fi; echo work >left; ${command}`

const ways = [
  ['the kernel ended the program', killed, 'error', /the kernel ended a process of the run/],
  ['the program gave up', v8, 'error', /a program of the run gave up|the kernel ended/],
  ['the runner gave up', runner, 'sandbox_lost', /ended with status 134: it ran out of memory \(small, 0\.38 GiB\)/],
] as const

test.skipIf(hasNoEngine).each(isLong ? ways : ways.slice(0, 1))(
  'a run whose sandbox had no memory left (%s) is gone on with one size up, on its volume',
  async (...row) => {
    const [, command, exitReason, why] = row
    const server = await stage()
    const runId = await wake(server, once(command))
    const run = await endedRun(server, runId)
    expect(run).toMatchObject({ status: 'failed', exitReason })
    expect(run['errorMessage']).toMatch(why)
    expect(run['errorMessage']).toMatch(/small, 0\.38 GiB/)
    expect(run['errorMessage']).toMatch(/A run in a sandbox of the size medium goes on with it\.$/)
    const next = await successorOf(server, runId)
    expect(await endedRun(server, next)).toMatchObject({ status: 'succeeded', parentRunId: runId })
    expect(await textOf(server, next)).toContain('found work')
    expect((await server.ok(`/runs/${next}/context`)).prompt).toMatch(/had no memory left.*\n\n.*\n\ngo$/s)
    const made = (await server.database.root('sandboxes').orderBy('created_at').select('size')) as object[]
    expect(made).toEqual([{ size: 'small' }, { size: 'medium' }])
  },
)

if (isLong)
  test.skipIf(hasNoEngine)('each size is tried once, and the largest is the last', async () => {
    const server = await stage()
    const first = await wake(server, killed, { sandboxSize: 'medium' })
    const second = await successorOf(server, first)
    expect((await endedRun(server, first))['errorMessage']).toMatch(/medium, 0\.75 GiB.*size large goes on/)
    const last = await endedRun(server, second)
    expect(last['errorMessage']).toMatch(/large, 1 GiB/)
    expect(last['errorMessage']).not.toMatch(/goes on/)
    expect(await server.database.root('runs').where({ parent_run_id: second })).toEqual([])
  })

test.skipIf(hasNoEngine)('one that a person cancels ends, and no volume is left', async () => {
  const server = await stage()
  const runId = await wake(server, `if [ -e left ]; then sleep 600; fi; echo work >left; ${killed}`)
  const next = await successorOf(server, runId)
  await waitFor(async () => (await server.ok(`/runs/${next}`)).status === 'running', 'that it runs')
  await server.ok(`/runs/${next}/cancel`, { body: {} })
  expect(await endedRun(server, next)).toMatchObject({ status: 'cancelled' })
  expect(await server.database.root('runs').where({ parent_run_id: next })).toEqual([])
})

if (isLong)
  test.skipIf(hasNoEngine)('one that is cancelled before it has a sandbox leaves no volume either', async () => {
    const server = await stage()
    const runId = await wake(server, once(killed))
    const next = await successorOf(server, runId)
    await server.ok(`/runs/${next}/cancel`, { body: {} })
    const { status } = await endedRun(server, next)
    expect(['cancelled', 'succeeded']).toContain(status)
  })

if (isLong)
  test.skipIf(hasNoEngine)('nothing follows where the workspace does not want that', async () => {
    const server = await stage({ oomResume: false })
    const run = await endedRun(server, await wake(server, killed))
    expect(run['errorMessage']).not.toMatch(/goes on/)
    expect(await server.database.root('runs').whereNotNull('parent_run_id')).toEqual([])
  })
