import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findDetails } from '../../control-plane/resources/runs/details-store.ts'
import { TestServer } from '../kit/server.ts'
import { makeHome, type Home } from './run-svc.ts'

// The commands of automations, by the real `svc` against a real server, as an agent types them within its run.

let home: Home
let server: TestServer
let env: Record<string, string>

beforeAll(async () => {
  home = makeHome()
  server = await TestServer.start()
  const agent = await server.createAgent()
  const runId = await server.startRun(agent.id)
  env = { SVC_TOKEN: await server.runToken(runId), SVC_API_URL: server.url, SVC_RUN_ID: runId }
})
afterAll(async () => {
  await server.stop()
  home.remove()
})

// oxlint-disable-next-line typescript/no-explicit-any
async function svc(line: string[]): Promise<any> {
  const end = await home.svc(line, { env })
  if (end.status !== 0) throw new Error(`svc ${line.join(' ')}: ${end.status} ${end.stderr}`)
  return JSON.parse(end.stdout)
}
const create = (...flags: string[]) => svc(['automation', 'create', '--name', 'Nightly', '--agent', 'me', ...flags])

test('a schedule is made, changed, moved and listed', async () => {
  const made = await create('--cron', '0 3 * * *', '--tz', 'Europe/Berlin', '--prompt', 'Update')
  expect(made).toMatchObject({
    trigger: { type: 'schedule', cron: '0 3 * * *', timezone: 'Europe/Berlin' },
    prompt: 'Update',
    concurrencyPolicy: 'skip_if_running',
  })
  const { id } = made
  expect((await create('--cron', '0 3 * * *', '--prompt', 'x')).trigger.timezone).toBe('UTC')
  expect(await svc(['automation', 'update', id, '--status', 'paused'])).toMatchObject({ status: 'paused' })
  expect(await svc(['automation', 'update', id, '--cron', '5 4 * * *', '--model-id', 'm'])).toMatchObject({
    trigger: { cron: '5 4 * * *', timezone: 'UTC' },
    modelId: 'm',
  })
  expect(await svc(['automation', 'update', id, '--model-id', 'none'])).toMatchObject({ modelId: null })
  for (const [move, status] of [
    ['resume', 'active'],
    ['pause', 'paused'],
    ['archive', 'archived'],
    ['unarchive', 'active'],
  ])
    expect(await svc(['automation', move!, id])).toMatchObject({ status })
  expect(await svc(['automation', 'get', id])).toMatchObject({ id })
  expect((await svc(['automation', 'list', '--status', 'active', '--agent', 'me', '--limit', '1'])).data).toHaveLength(
    1,
  )
})

test('a prompt comes from a file; a git event needs a connection', async () => {
  const file = join(home.dir, 'prompt.md')
  writeFileSync(file, '# Long\n')
  expect(await create('--trigger', 'webhook', '--prompt-file', file)).toMatchObject({ prompt: '# Long\n' })
  const line = [
    'automation',
    'create',
    '--name',
    'x',
    '--agent',
    'me',
    '--prompt',
    'x',
    '--event',
    'pull_request.merged',
  ]
  const end = await home.svc([...line, '--repo', 'acme/web'], { env })
  expect([end.status, JSON.parse(end.stderr).error.code]).toEqual([1, 'github_not_installed'])
})

test('a webhook is fired, rotated, run by hand; its runs and skips are listed', async () => {
  const { id, webhookUrl } = await create('--trigger', 'webhook', '--prompt', 'Look')
  const token = webhookUrl.split('/').at(-1)
  const fired = await svc(['automation', 'hook', token, '--body', 'no json {'])
  expect(fired).toMatchObject({ kind: 'triggered', runId: expect.any(String) })
  expect((await findDetails(server.database.root, fired.runId))?.prompt).toContain('no json {')
  const file = join(home.dir, 'body.bin')
  writeFileSync(file, 'from a file')
  expect((await svc(['automation', 'hook', token, '--body-file', file])).runId).not.toBe(fired.runId)
  const both = await home.svc(['automation', 'hook', token, '--body', 'a', '--body-file', file], { env })
  expect(both.status).toBe(2)
  expect(await svc(['automation', 'run', id])).toMatchObject({ kind: 'triggered' })
  const rotated = await svc(['automation', 'rotate', id])
  expect(rotated.webhookUrl).not.toBe(webhookUrl)
  expect((await home.svc(['automation', 'hook', token], { env })).stderr).toContain('automation_not_found')
  expect((await svc(['automation', 'runs', id])).data).toHaveLength(3)
  expect((await svc(['automation', 'all-runs', '--status', 'queued'])).data.length).toBeGreaterThanOrEqual(3)
  await svc(['automation', 'pause', id])
  await svc(['automation', 'run', id])
  expect((await svc(['automation', 'skips', id])).data).toMatchObject([{ reason: 'paused' }])
})

test('the pull request of a task is asked of the workspace of the caller', async () => {
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  const task = await server.ok('/tasks', { body: { title: 'Something' }, headers })
  const end = await home.svc(['task', 'pull-request', task.key], { env })
  expect([end.status, JSON.parse(end.stderr).error.code]).toEqual([1, 'github_not_installed'])
})
