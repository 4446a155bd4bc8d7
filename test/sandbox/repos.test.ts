import { isLong } from '../kit/forms.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cloneFolder } from '../../shared/runs/repo.ts'
import type { TestRepo } from '../kit/git-server.ts'
import { waitFor } from '../kit/programs.ts'
import { gitPassword, repoStage, type RepoWake } from '../kit/sandbox-repos.ts'
import { endedRun, engineClient, hasNoEngine, leftOnEngine } from '../kit/sandboxes.ts'
import type { TestServer } from '../kit/server.ts'

// Cloud runs that work on a repository at a real git host, behind a password that is nowhere in the sandbox.

const textOf = async (server: TestServer, runId: string): Promise<string> => {
  const { data } = (await server.ok(`/runs/${runId}/events?limit=200`)) as {
    data: { kind: string; data: { text?: string } }[]
  }
  return data.map(({ kind, data: { text = '' } }) => (kind === 'text' ? text : '')).join('')
}

const commit = (text: string) => `echo ${text} >> README.md && git add -A && git commit -qm '${text}'`

/** The branches that the git host has. */
const branchesOf = (repo: TestRepo): string[] => repo.git(['for-each-ref', '--format=%(refname:lstrip=2)']).split('\n')

test.skipIf(hasNoEngine)('a run clones its repository, and what it commits is on its branch', async () => {
  const { server, repo, wake } = await repoStage()
  const runId = await wake(`pwd; git status -sb; ${commit('second')}; echo new > untracked`)
  expect(await endedRun(server, runId)).toMatchObject({
    exitReason: 'completed',
    status: 'succeeded',
    environment: { type: 'cloud', cwd: 'repo-root' },
    // What was not committed is not lost.
    errorMessage: `The files that were not committed are at svc/rescue/${runId}.`,
  })
  expect(await textOf(server, runId)).toMatch(new RegExp(`^${cloneFolder}\r\n## .*svc/${runId}`))
  expect(repo.git(['show', `svc/${runId}:README.md`])).toBe('first\nsecond')
  expect(repo.git(['log', '--format=%s', `svc/${runId}`])).toBe('second\nx')
  expect(repo.git(['show', `svc/rescue/${runId}:untracked`])).toBe('new')
  expect(await server.ok(`/runs/${runId}/manifest`)).toMatchObject({
    folder: { rootPath: cloneFolder },
    repo: { branch: `svc/${runId}`, rescueBranch: `svc/rescue/${runId}` },
  })
  const changes = (await server.ok(`/runs/${runId}/change-set`)) as { files: { path: string; status: string }[] }
  expect(changes.files.map(({ path, status }) => `${status} ${path}`).toSorted()).toEqual([
    'added untracked',
    'modified README.md',
  ])
})

test.skipIf(hasNoEngine)(
  'a run works on the repository and the branches of its task, and pushes nowhere else',
  async () => {
    const { server, repo, repoId, wake } = await repoStage()
    repo.commit({ 'README.md': 'base\n' }, 'release')
    const taskOf = { repoId, baseBranch: 'release', branchName: 'feature/x' }
    const forbidden = [
      'HEAD:refs/heads/main',
      'HEAD:refs/heads/release',
      'HEAD:refs/heads/feature/y',
      'HEAD:refs/heads/svc/rescue/run_other',
      'HEAD:refs/tags/v1',
      'HEAD:refs/pull/1/head',
      ':refs/heads/feature/x',
      ':refs/heads/main',
      '+HEAD~1:refs/heads/feature/x',
      '--mirror',
      '--tags HEAD:refs/heads/feature/x HEAD:refs/heads/z',
    ]
    const attempts = forbidden.map((what) => `git push -q origin ${what} 2>/dev/null && echo LET THROUGH '${what}'`)
    const runId = await wake(
      `${commit('mine')}; git tag v2; git push -q && echo pushed; ${attempts.join('; ')}; true`,
      { taskOf },
    )
    expect(await endedRun(server, runId)).toMatchObject({ status: 'succeeded', errorMessage: null })
    const text = await textOf(server, runId)
    expect(text).toContain('pushed')
    expect(text).not.toContain('LET THROUGH')
    expect(branchesOf(repo)).toEqual(['feature/x', 'main', 'release'])
    expect(repo.git(['show', 'feature/x:README.md'])).toBe('base\nmine')
    // The next run of the task goes on there.
    const next = await wake(commit('more'), { taskOf })
    expect(await endedRun(server, next)).toMatchObject({ status: 'succeeded' })
    expect(repo.git(['show', 'feature/x:README.md'])).toBe('base\nmine\nmore')
    const counted = async () => {
      const { hosts } = (await server.ok(`/runs/${runId}/network`)) as { hosts: { host: string; decision: string }[] }
      const seen = hosts.filter(({ host }) => host === '127.0.0.1').map(({ decision }) => decision)
      return seen.includes('allowed') && seen.includes('refused')
    }
    await waitFor(counted, 'what git asked for')
  },
)

test.skipIf(hasNoEngine)('the credential for the git host is nowhere in the sandbox', async () => {
  const { server, wake } = await repoStage()
  const reversed = (text: string) => text.split('').toReversed().join('')
  const program = readFileSync(join(import.meta.dirname, 'look-for-key.mjs')).toString('base64')
  const sent = Buffer.from(`git:${gitPassword}`).toString('base64')
  const look = `node /tmp/look.mjs '${reversed(gitPassword)}' '${reversed(sent)}'`
  const asking = 'git fetch -q origin; (while :; do git ls-remote -q origin >/dev/null; done) & sleep 1'
  const runId = await wake(`echo ${program} | base64 -d > /tmp/look.mjs; ${asking}; ${look}; kill $!`)
  expect(await endedRun(server, runId)).toMatchObject({ status: 'succeeded' })
  const text = await textOf(server, runId)
  expect(JSON.parse(text.slice(text.indexOf('{"found"'))) as object).toMatchObject({ found: [[], []] })
})

test.skipIf(hasNoEngine)('a repository that cannot be cloned ends the run with a sentence', async () => {
  const { server, repo, repoId, host, wake } = await repoStage()
  const ended = async (how: RepoWake) => {
    const run = await endedRun(server, await wake('echo here', how))
    expect(run).toMatchObject({ status: 'failed', exitReason: 'dispatch_error' })
    return run['errorMessage']
  }
  const where = `(${host.url}/team/web)`
  expect(await ended({ taskOf: { repoId, baseBranch: 'nowhere' } })).toBe(
    `The repository has no branch nowhere. ${where}`,
  )
  const other = await server.ok('/repos', { body: { gitRemote: `${host.url}/team/none` } })
  expect(await ended({ defaultRepoId: other.id })).toMatch(
    /shows no such repository with the credential that this run has/,
  )
  host.answer = (_request, response) => response.writeHead(500).end() !== null
  expect(await ended({})).toMatch(
    /^The repository cannot be cloned: The git host did not answer as one does \(status 500\)/,
  )
  host.answer = null
  expect(branchesOf(repo)).toEqual(['main'])
})

if (isLong)
  test.skipIf(hasNoEngine)('an empty repository gets its first commit', async () => {
    const { server, repo, wake } = await repoStage({ files: null })
    const runId = await wake(commit('one'))
    expect(await endedRun(server, runId)).toMatchObject({ status: 'succeeded', errorMessage: null })
    expect(repo.git(['show', `svc/${runId}:README.md`])).toBe('one')
  })

test.skipIf(hasNoEngine)(
  'what a sandbox that was killed had not pushed is rescued before its volume goes',
  async () => {
    const { server, repo, wake } = await repoStage()
    const runId = await wake(
      `${commit('second')}; git push -q; ${commit('third')}; echo left > untracked; echo here; sleep 600`,
    )
    await waitFor(async () => (await textOf(server, runId)).includes('here'), 'its output')
    const [name] = await leftOnEngine(server)
    await engineClient().does({ method: 'POST', path: `/containers${name}/kill` }, [204])
    const run = await endedRun(server, runId)
    expect(run).toMatchObject({ status: 'failed', exitReason: 'sandbox_lost' })
    expect(run['errorMessage']).toMatch(new RegExp(`ended with status 137.* are at svc/rescue/${runId}`))
    expect(repo.git(['log', '--format=%s', `svc/${runId}`])).toBe('third\nsecond\nx')
    expect(repo.git(['show', `svc/rescue/${runId}:untracked`])).toBe('left')
    const { data } = (await server.ok(`/runs/${runId}/events?limit=200`)) as { data: { kind: string; data: object }[] }
    expect(data.slice(-2)).toMatchObject([
      { kind: 'error', data: { class: 'work_rescued' } },
      { kind: 'ended', data: { exitReason: 'sandbox_lost' } },
    ])
  },
)

if (isLong)
  test.skipIf(hasNoEngine)('work that no git host takes is told as lost, and the run has not succeeded', async () => {
    const { server, host, wake } = await repoStage()
    const runId = await wake(`${commit('second')}; touch /tmp/ready; echo here; sleep 3`)
    await waitFor(async () => (await textOf(server, runId)).includes('here'), 'its output')
    host.answer = (_request, response) => response.writeHead(503).end() !== null
    const run = await endedRun(server, runId)
    expect(run).toMatchObject({ status: 'failed', exitReason: 'error' })
    expect(run['errorMessage']).toMatch(/could not be pushed: .*status 503/)
  })

if (isLong)
  test.skipIf(hasNoEngine)('a run that is cancelled while its repository is cloned ends at once', async () => {
    const { server, host, wake } = await repoStage()
    const asked = Promise.withResolvers<void>()
    host.answer = () => {
      asked.resolve()
      return true
    }
    const runId = await wake('echo here')
    await asked.promise
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(await endedRun(server, runId)).toMatchObject({ status: 'cancelled' })
  })
