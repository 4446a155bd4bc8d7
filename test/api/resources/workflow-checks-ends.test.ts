import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { deliver, mergedPayload, type FakeGithub } from '../../kit/fake-github.ts'
import type { TestServer } from '../../kit/server.ts'
import { createAutomation } from './automations-kit.ts'
import { look, newRepo, resultOf, run, setChecks, startWait } from './checks-kit.ts'
import { startWithGithub, workedOff } from './github-kit.ts'
import { makeWorkflow, readFlow, settled, startFlow } from './workflows-kit.ts'

// How a wait for checks ends without them, and the built-in program that mends what fails.

let github: FakeGithub, server: TestServer, stop: () => Promise<void>
beforeAll(async () => {
  ;({ github, server, stop } = await startWithGithub())
})
afterAll(() => stop())
afterEach(() => {
  github.trouble = null
})

describe('a wait for checks', () => {
  it('is read though a thousand others with nearer deadlines wait', async () => {
    const [repo, others] = [newRepo(), newRepo()]
    setChecks(github, repo, [run('build', 'success')])
    github.answers.set(`/${others}/pulls`, [])
    const holder = await startWait(server, others)
    const { root } = server.database
    const call = await root('workflow_calls').where({ workflow_run_id: holder }).first()
    const more = Array.from({ length: 1_000 }, (_, at) => ({ ...call, seq: at + 1 }))
    await root.batchInsert('workflow_calls', more, 20)
    const id = await startWait(server, repo, ', deadlineMinutes: 600')
    await look(server)
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed' })
    await server.ok(`/workflows/runs/${holder}/cancel`, { method: 'POST' })
  })

  it('ends at its deadline, whether there is a pull request or not, and whatever GitHub answers', async () => {
    const repo = newRepo()
    github.answers.set(`/${repo}/pulls`, [])
    const id = await startWait(server, repo, ', deadlineMinutes: 3')
    await look(server)
    github.trouble = { status: 503, text: 'down' }
    await look(server)
    expect((await readFlow(server, id)).status).toBe('running')
    await look(server)
    expect(await resultOf(server, id)).toEqual({ state: 'timed_out', checks: [] })
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
    fixer = await server.createAgent({ name: 'Fixer', harness: 'claude' })
  })
  afterAll(() => device.disconnect())

  it('is started by a merge, has what fails mended in one session, and ends when all passes', async () => {
    const repo = newRepo()
    setChecks(github, repo, [run('test', null)])
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
    setChecks(github, repo, [run('test', 'failure'), run('lint', 'success')])
    await look(server, device)
    const first = await device.take()
    expect(first.spec).toMatchObject({ agent: { id: fixer.id }, resumeSessionId: null })
    expect(first.spec.prompt).toContain(`in ${repo} fail:\n- test (http://127.0.0.1/test)\n\n`)
    // What it pushed has new checks.
    setChecks(github, repo, [run('test', null)])
    await end(first)
    await look(server, device)
    expect(await readFlow(server, id)).toMatchObject({
      status: 'running',
      parkedChecks: { branch: expect.any(String) },
    })
    setChecks(github, repo, [run('test', 'failure')])
    await look(server, device)
    const second = await device.take()
    expect(second.spec.resumeSessionId).toBe('ses-fix')
    setChecks(github, repo, [run('test', 'success')])
    await end(second)
    await settled(server)
    await look(server, device)
    expect(await readFlow(server, id)).toMatchObject({
      status: 'completed',
      summary: 'All checks pass after 2 rounds of mending.',
      steps: [{ label: 'fix 1' }, { label: 'fix 2' }],
    })
  })

  it('ends as failed when it is mended often enough, when the checks do not end, and without a branch', async () => {
    const repo = newRepo()
    setChecks(github, repo, [run('test', 'failure')])
    const start = (input: Record<string, unknown>) =>
      startFlow(server, 'fix_failing_checks', { input: { branch: 'topic', repo, fixer: fixer.handle, ...input } })
    const again = await start({ rounds: 1 })
    await settled(server)
    await look(server, device)
    await end(await device.take())
    await settled(server)
    await look(server, device)
    expect(await readFlow(server, again)).toMatchObject({
      status: 'failed',
      summary: 'The checks still fail after 1 round of mending:\n- test (http://127.0.0.1/test)',
    })
    setChecks(github, repo, [run('test', null)])
    const slow = await start({ minutes: 1 })
    await settled(server)
    await look(server, device)
    await look(server, device)
    expect(await readFlow(server, slow)).toMatchObject({
      status: 'failed',
      summary: 'The checks did not end within 1 minute.',
    })
    const none = await start({ branch: null })
    await settled(server)
    expect((await readFlow(server, none)).summary).toContain('give branch or taskRef')
  })
})
