import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deliver, repositoryOf, sha, type FakeGithub } from '../../kit/fake-github.ts'
import type { TestServer } from '../../kit/server.ts'
import { look, newRepo, resultOf, run, setChecks, startWait } from './checks-kit.ts'
import { startWithGithub, workedOff } from './github-kit.ts'
import { makeWorkflow, readFlow, settled, startFlow } from './workflows-kit.ts'

// Workflows that wait for the checks of a branch's pull request: who reads them, and what one replica hears that another must hand on.

let github: FakeGithub, server: TestServer, stop: () => Promise<void>
beforeAll(async () => {
  ;({ github, server, stop } = await startWithGithub())
})
afterAll(() => stop())

describe('a wait for checks', () => {
  it('shows them while they run, and ends when all are done', async () => {
    const repo = newRepo()
    setChecks(github, repo, [run('build', 'success'), run('test', null)])
    const id = await startWait(server, repo)
    expect((await readFlow(server, id)).parkedChecks).toMatchObject({ branch: 'topic', checks: [] })
    await look(server)
    expect((await readFlow(server, id)).parkedChecks.checks).toEqual([
      { name: 'build', status: 'passed', url: 'http://127.0.0.1/build' },
      { name: 'test', status: 'pending', url: 'http://127.0.0.1/test' },
    ])
    setChecks(github, repo, [run('build', 'success'), run('test', 'failure')])
    await look(server)
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed', parkedChecks: null })
    expect(await resultOf(server, id)).toMatchObject({
      state: 'failed',
      checks: [{ name: 'build' }, { status: 'failed' }],
    })
  })

  const ended = (conclusion: string) => ({ head_sha: sha('a'), conclusion, pull_requests: [{ number: 1 }] })
  it.each([
    ['passed', 'check_suite', { check_suite: ended('success') }],
    ['failed', 'check_suite', { check_suite: ended('failure') }],
    ['failed', 'check_run', { check_run: ended('timed_out') }],
    ['failed', 'check_run', { check_run: ended('cancelled') }],
    ['failed', 'status', { sha: sha('a'), state: 'failure' }],
    ['failed', 'status', { sha: sha('a'), state: 'error' }],
  ])('ends at once when GitHub says that the last one %s (%s %j)', async (state, event, told) => {
    const repo = newRepo()
    setChecks(github, repo, [run('build', 'success'), run('test', state === 'passed' ? 'success' : 'failure')])
    const id = await startWait(server, repo)
    const payload = { action: 'completed', repository: repositoryOf(repo), ...told }
    const delivery = crypto.randomUUID()
    expect((await deliver(server.url, { event, payload, id: delivery })).body.status).toBe('accepted')
    await workedOff(server, delivery)
    await settled(server)
    expect(await resultOf(server, id)).toMatchObject({ state })
  })

  it('reads a branch once for all who wait on it, and few branches for one message of GitHub', async () => {
    const repo = newRepo()
    setChecks(github, repo, [run('build', 'success')])
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
    await look(server)
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '23' })
  })
})
