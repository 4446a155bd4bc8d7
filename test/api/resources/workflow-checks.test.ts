import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { deliver, mergedPayload, pullOf, repositoryOf, sha, type FakeGithub } from '../../kit/fake-github.ts'
import type { TestServer } from '../../kit/server.ts'
import { createAutomation } from './automations-kit.ts'
import { startWithGithub, workedOff } from './github-kit.ts'
import { makeWorkflow, readFlow, settled, startFlow } from './workflows-kit.ts'

/** Workflows that wait for the checks of a branch's pull request. */

let github: FakeGithub, server: TestServer, stop: () => Promise<void>
beforeAll(async () => {
  ;({ github, server, stop } = await startWithGithub())
})
afterAll(() => stop())
beforeEach(() => {
  github.trouble = null
})

/** The device of the tests that have one. */
let linked: FakeDevice | null = null
let count = 0
const newRepo = () => `acme/waited-${++count}`
const run = (name: string, conclusion: string | null) => ({
  name,
  status: conclusion === null ? 'in_progress' : 'completed',
  conclusion,
  html_url: `http://127.0.0.1/${name}`,
})
function setChecks(repo: string, runs: object[]) {
  github.answers.set(`/${repo}/pulls`, [{ number: 1 }])
  github.answers.set(`/${repo}/pulls/1`, pullOf(repo))
  github.answers.set(`/${repo}/commits/${sha('a')}/check-runs`, { check_runs: runs })
  github.answers.set(`/${repo}/commits/${sha('a')}/status`, { statuses: [] })
}

async function wait(repo: string, more = ''): Promise<string> {
  const name = await makeWorkflow(server, `return await checks({ branch: 'topic', repo: '${repo}'${more} })`)
  const id = await startFlow(server, name)
  await settled(server)
  return id
}
/** A minute later, of which the device knows. */
async function look() {
  server.world.advance(60_000)
  await linked?.beat()
  await server.plane.sweeper.runAll()
  await settled(server)
}
const resultOf = async (id: string) => JSON.parse((await readFlow(server, id)).summary)

describe('a wait for checks', () => {
  it('shows them while they run, and ends when all are done', async () => {
    const repo = newRepo()
    setChecks(repo, [run('build', 'success'), run('test', null)])
    const id = await wait(repo)
    expect((await readFlow(server, id)).parkedChecks).toMatchObject({ branch: 'topic', checks: [] })
    await look()
    expect((await readFlow(server, id)).parkedChecks.checks).toEqual([
      { name: 'build', status: 'passed', url: 'http://127.0.0.1/build' },
      { name: 'test', status: 'pending', url: 'http://127.0.0.1/test' },
    ])
    setChecks(repo, [run('build', 'success'), run('test', 'failure')])
    await look()
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed', parkedChecks: null })
    expect(await resultOf(id)).toMatchObject({ state: 'failed', checks: [{ name: 'build' }, { status: 'failed' }] })
  })

  it('ends at once when GitHub says that the last one passed', async () => {
    const repo = newRepo()
    setChecks(repo, [run('build', 'success')])
    const id = await wait(repo)
    const at = { head_sha: sha('a'), conclusion: 'success', pull_requests: [{ number: 1 }] }
    const payload = { action: 'completed', repository: repositoryOf(repo), check_suite: at }
    const delivery = crypto.randomUUID()
    await deliver(server.url, { event: 'check_suite', payload, id: delivery })
    await workedOff(server, delivery)
    await settled(server)
    expect(await resultOf(id)).toMatchObject({ state: 'passed' })
  })

  it('reads a branch once for all who wait on it, and few branches for one message of GitHub', async () => {
    const repo = newRepo()
    setChecks(repo, [run('build', 'success')])
    const name = await makeWorkflow(
      server,
      `const branches = [...Array(3).fill('topic'), ...Array.from({ length: 20 }, (_, at) => 'other-' + at)]
       const all = await parallel(branches.map((branch) => () => checks({ branch, repo: '${repo}' })))
       return all.filter((one) => one.state === 'passed').length`,
    )
    const id = await startFlow(server, name)
    await settled(server)
    const asked = () => github.asked.filter((path) => path.startsWith(`/repos/${repo}/pulls?`))
    const at = { head_sha: sha('a'), conclusion: 'success', pull_requests: [{ number: 1 }] }
    const delivery = crypto.randomUUID()
    const payload = { action: 'completed', repository: repositoryOf(repo), check_suite: at }
    await deliver(server.url, { event: 'check_suite', payload, id: delivery })
    await workedOff(server, delivery)
    expect(asked()).toHaveLength(20)
    expect(new Set(asked()).size).toBe(20)
    await look()
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '23' })
  })

  it('is read though a thousand others with nearer deadlines wait', async () => {
    const [repo, others] = [newRepo(), newRepo()]
    setChecks(repo, [run('build', 'success')])
    github.answers.set(`/${others}/pulls`, [])
    const holder = await wait(others)
    const { root } = server.database
    const call = await root('workflow_calls').where({ workflow_run_id: holder }).first()
    const more = Array.from({ length: 1_000 }, (_, at) => ({ ...call, seq: at + 1 }))
    await root.batchInsert('workflow_calls', more, 20)
    const id = await wait(repo, ', deadlineMinutes: 600')
    await look()
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed' })
    await server.ok(`/workflows/runs/${holder}/cancel`, { method: 'POST' })
  })

  it('ends at its deadline, whether there is a pull request or not, and whatever GitHub answers', async () => {
    const repo = newRepo()
    github.answers.set(`/${repo}/pulls`, [])
    const id = await wait(repo, ', deadlineMinutes: 3')
    await look()
    github.trouble = { status: 503, text: 'down' }
    await look()
    expect((await readFlow(server, id)).status).toBe('running')
    await look()
    expect(await resultOf(id)).toEqual({ state: 'timed_out', checks: [] })
  })

  it('is refused without a branch or a repository of the workspace', async () => {
    // The operator bound nothing to the second workspace of the server.
    const { token } = await server.addPerson('owner', 'elsewhere')
    const name = await makeWorkflow(
      server,
      `const codes = []
       for (const options of [undefined, { branch: 'a' }, { branch: 'a', repo: 'acme/strange' }])
         await checks(options).catch((error) => codes.push(error.code))
       return codes.join()`,
      { token },
    )
    const id = await startFlow(server, name, {}, token)
    await settled(server)
    const { summary } = await server.ok(`/workflows/runs/${id}`, { token })
    expect(summary).toBe('branch_missing,repo_missing,repo_not_found')
  })
})

describe('fix_failing_checks', () => {
  const end = async (run: FakeRun) => {
    await run.events({ kind: 'session', data: { sessionId: 'ses-fix' } })
    await run.events({ kind: 'result', data: { text: 'Mended.', isError: false } })
    await run.end('completed', { sessionId: 'ses-fix' })
  }
  let device: FakeDevice
  let fixer: { id: string; handle: string }
  beforeAll(async () => {
    device = await FakeDevice.connect(server)
    linked = device
    fixer = await server.createAgent({ name: 'Fixer', harness: 'claude' })
  })
  afterAll(() => device.disconnect())

  it('is started by a merge, has what fails mended in one session, and ends when all passes', async () => {
    const repo = newRepo()
    setChecks(repo, [run('test', null)])
    await createAutomation(server, fixer.id, {
      trigger: { event: 'pull_request.merged', repo },
      workflow: 'fix_failing_checks',
    })
    const delivery = crypto.randomUUID()
    await deliver(server.url, { event: 'pull_request', payload: mergedPayload(repo, { number: 1 }), id: delivery })
    await workedOff(server, delivery)
    await settled(server)
    const [{ id }] = (await server.ok('/workflows/runs?workflow=fix_failing_checks')).data
    expect(await readFlow(server, id)).toMatchObject({ status: 'running', parkedChecks: { checks: [] }, steps: [] })
    setChecks(repo, [run('test', 'failure'), run('lint', 'success')])
    await look()
    const first = await device.take()
    expect(first.spec).toMatchObject({ agent: { id: fixer.id }, resumeSessionId: null })
    expect(first.spec.prompt).toContain(`in ${repo} fail:\n- test (http://127.0.0.1/test)\n\n`)
    // What it pushed has new checks.
    setChecks(repo, [run('test', null)])
    await end(first)
    await look()
    expect(await readFlow(server, id)).toMatchObject({
      status: 'running',
      parkedChecks: { branch: expect.any(String) },
    })
    setChecks(repo, [run('test', 'failure')])
    await look()
    const second = await device.take()
    expect(second.spec.resumeSessionId).toBe('ses-fix')
    setChecks(repo, [run('test', 'success')])
    await end(second)
    await settled(server)
    await look()
    expect(await readFlow(server, id)).toMatchObject({
      status: 'completed',
      summary: 'All checks pass after 2 rounds of mending.',
      steps: [{ label: 'fix 1' }, { label: 'fix 2' }],
    })
  })

  it('ends as failed when it is mended often enough, when the checks do not end, and without a branch', async () => {
    const repo = newRepo()
    setChecks(repo, [run('test', 'failure')])
    const start = (input: Record<string, unknown>) =>
      startFlow(server, 'fix_failing_checks', { input: { branch: 'topic', repo, fixer: fixer.handle, ...input } })
    const again = await start({ rounds: 1 })
    await settled(server)
    await look()
    await end(await device.take())
    await settled(server)
    await look()
    expect(await readFlow(server, again)).toMatchObject({
      status: 'failed',
      summary: 'The checks still fail after 1 round of mending:\n- test (http://127.0.0.1/test)',
    })
    setChecks(repo, [run('test', null)])
    const slow = await start({ minutes: 1 })
    await settled(server)
    await look()
    await look()
    expect(await readFlow(server, slow)).toMatchObject({
      status: 'failed',
      summary: 'The checks did not end within 1 minute.',
    })
    const none = await start({ branch: null })
    await settled(server)
    expect((await readFlow(server, none)).summary).toContain('give branch or taskRef')
  })
})
