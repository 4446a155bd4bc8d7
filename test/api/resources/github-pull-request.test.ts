import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  deliver,
  publicKeyOf,
  pullOf,
  repositoryOf,
  sha,
  githubSettings,
  startFakeGithub,
  webhookSecret,
  type FakeGithub,
} from '../../kit/fake-github.ts'
import { waitFor } from '../../kit/programs.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'

// GET /companies/:companyId/tasks/:taskId/pull-request, read live from a GitHub on loopback.

let github: FakeGithub
let server: TestServer
let folder: string
let appKeyFile: string
let appKey: string

beforeAll(async () => {
  github = await startFakeGithub()
  const settings = { ...githubSettings(github), SVC_GITHUB_API_URL: `${github.apiUrl}/` }
  server = await TestServer.start({ settings })
  folder = mkdtempSync(join(tmpdir(), 'svc-github-'))
  appKeyFile = join(folder, 'app.pem')
  // GitHub gives keys in this form.
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(appKeyFile, pair.privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  appKey = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString()
})
afterAll(async () => {
  await server.stop()
  await github.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  github.answers.clear()
  github.redirects.clear()
  github.asked.length = 0
  github.trouble = null
  github.app = null
})

async function createTask(on: TestServer, body: Record<string, unknown> = {}) {
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  return on.ok('/tasks', { body: { title: `Task ${crypto.randomUUID()}`, ...body }, headers })
}
const pathOf = (on: TestServer, task: string, base = 'companies') =>
  `/${base}/${on.owner.workspaceId}/tasks/${task}/pull-request`

/** A task whose pull request became known by a delivery. */
async function taskWithPull(on: TestServer, repo = 'acme/web') {
  const task = await createTask(on)
  const payload = {
    action: 'opened',
    repository: repositoryOf(repo),
    pull_request: pullOf(repo, { number: 3, title: task.key }),
  }
  await deliver(on.url, { event: 'pull_request', payload })
  await waitFor(async () => (await on.ok(`/tasks/${task.key}`)).pullRequest !== null, 'the pull request is known')
  return task
}

function showPull(repo = 'acme/web', options: Parameters<typeof pullOf>[1] = {}) {
  github.answers.set(`/${repo}/pulls/3`, pullOf(repo, { number: 3, title: 'As it is now', ...options }))
  const run = (conclusion: string | null) => ({ status: conclusion === null ? 'queued' : 'completed', conclusion })
  github.answers.set(`/${repo}/commits/${sha('a')}/check-runs`, { check_runs: [run('success'), run(null)] })
  github.answers.set(`/${repo}/commits/${sha('a')}/status`, { statuses: [{ state: 'success' }] })
}

describe('the pull request of a task', () => {
  it('is read as it is now, at both paths, by id and by key', async () => {
    const task = await taskWithPull(server)
    showPull()
    const expected = {
      object: 'pull_request',
      taskId: task.key,
      repo: 'acme/web',
      number: 3,
      url: 'http://127.0.0.1/acme/web/pull/3',
      title: 'As it is now',
      state: 'open',
      isDraft: false,
      author: 'octocat',
      headBranch: 'feature',
      headSha: sha('a'),
      baseBranch: 'main',
      isMergeable: true,
      checks: { state: 'pending', passed: 2, failed: 0, pending: 1 },
      commits: 2,
      changedFiles: 3,
      additions: 10,
      deletions: 4,
      createdAt: '2026-01-02T03:04:05Z',
      updatedAt: '2026-01-02T03:04:05Z',
      closedAt: null,
      mergedAt: null,
    }
    expect(await server.ok(pathOf(server, task.key))).toEqual(expected)
    expect(await server.ok(pathOf(server, task.id, 'workspaces'))).toEqual(expected)
    showPull('acme/web', { merged: true })
    expect(await server.ok(pathOf(server, task.id))).toMatchObject({ state: 'merged', mergedAt: expect.any(String) })
    showPull('acme/web', { state: 'closed', draft: true })
    expect(await server.ok(pathOf(server, task.id))).toMatchObject({ state: 'closed', isDraft: true })
  })

  it('is found by the branch of the task in the repository of its project', async () => {
    const repoUrl = 'ssh://git@127.0.0.1:22/Acme/Web.git'
    const project = await server.ok('/projects', { body: { name: 'Web', repoUrl } })
    const task = await createTask(server, { projectId: project.id, branchName: 'work/1&more+x' })
    showPull()
    let asked: string | null = null
    github.answers.set('/acme/web/pulls', (query: URLSearchParams) => {
      asked = query.get('head')
      return [{ number: 3 }]
    })
    expect(await server.ok(pathOf(server, task.key))).toMatchObject({ number: 3 })
    expect(asked).toBe('acme:work/1&more+x')
  })

  it('is resource_not_found for a task without one, and for one that the git host does not show', async () => {
    const bare = await createTask(server)
    expect(outcomeOf(await server.call(pathOf(server, bare.key)))).toBe('404 resource_not_found')
    const branched = await createTask(server, { branchName: 'work/2' })
    expect(outcomeOf(await server.call(pathOf(server, branched.key)))).toBe('404 resource_not_found')
    const hidden = await taskWithPull(server)
    expect(outcomeOf(await server.call(pathOf(server, hidden.key)))).toBe('404 resource_not_found')
  })

  it('of another host is not asked for: the token is for one host only', async () => {
    const task = await createTask(server)
    const pullRequest = JSON.stringify({ number: 3, url: 'http://elsewhere.example/acme/web/pull/3' })
    await server.database.root('tasks').where({ id: task.id }).update({ pull_request: pullRequest })
    expect(outcomeOf(await server.call(pathOf(server, task.key)))).toBe('404 resource_not_found')
    expect(github.asked).toEqual([])
  })

  it('answers task_not_found, not_permitted and malformed ids', async () => {
    expect(outcomeOf(await server.call(pathOf(server, 'NOPE-1')))).toBe('404 task_not_found')
    expect(outcomeOf(await server.call(pathOf(server, 'current')))).toBe('404 task_not_found')
    const elsewhere = `/companies/${crypto.randomUUID()}/tasks/NOPE-1/pull-request`
    expect(outcomeOf(await server.call(elsewhere))).toBe('403 not_permitted')
    expect(outcomeOf(await server.call('/companies/x/tasks/NOPE-1/pull-request'))).toBe('400 invalid_id_format')
  })

  it('is git_host_unavailable while the git host fails', async () => {
    const task = await taskWithPull(server)
    for (const trouble of [
      { status: 500, text: '' },
      { status: 401, text: '{"message":"Bad credentials"}' },
      { status: 200, text: 'no json' },
      { status: 200, text: 'x'.repeat(9 * 1024 * 1024) },
    ]) {
      github.trouble = trouble
      expect(outcomeOf(await server.call(pathOf(server, task.key)))).toBe('424 git_host_unavailable')
    }
  })

  it('follows a repository that was renamed, but nowhere to another server, nor in a circle', async () => {
    const task = await taskWithPull(server)
    const moved = pullOf('acme/web', { number: 3, title: 'Moved' })
    github.answers.set('/acme/new/pulls/3', moved)
    github.redirects.set('/acme/web/pulls/3', `${github.apiUrl}/repos/acme/new/pulls/3`)
    expect(await server.ok(pathOf(server, task.key))).toMatchObject({ title: 'Moved' })
    const other = await startFakeGithub()
    try {
      other.token = github.token
      other.answers.set('/acme/web/pulls/3', moved)
      for (const there of [`${other.apiUrl}/repos/acme/web/pulls/3`, `${github.apiUrl}/repos/acme/web/pulls/3`]) {
        github.redirects.set('/acme/web/pulls/3', there)
        expect(outcomeOf(await server.call(pathOf(server, task.key)))).toBe('424 git_host_unavailable')
      }
      expect(other.asked).toEqual([])
    } finally {
      await other.stop()
    }
  })

  it('is github_not_installed without credentials', async () => {
    const bare = await TestServer.start()
    const task = await createTask(bare)
    expect(outcomeOf(await bare.call(pathOf(bare, task.key)))).toBe('400 github_not_installed')
    await bare.stop()
  })
})

describe('a GitHub App', () => {
  it('reads by the installation that covers the repository, whose token it keeps while it lasts', async () => {
    const app = await appServer()
    try {
      const task = await taskWithPull(app.server)
      showPull()
      for (let i = 0; i < 5; i++) expect(await app.server.ok(pathOf(app.server, task.key))).toMatchObject({ number: 3 })
      // Each replica keeps its own.
      expect([1, 2]).toContain(app.state.minted)
    } finally {
      await app.server.stop()
    }
  })

  it('sees nothing of a repository on which it is not installed', async () => {
    const app = await appServer()
    try {
      const task = await taskWithPull(app.server, 'acme/private')
      expect(outcomeOf(await app.server.call(pathOf(app.server, task.key)))).toBe('404 resource_not_found')
      expect(app.state.minted).toBe(0)
      app.state.installed.add('acme/private')
      showPull('acme/private')
      expect(await app.server.ok(pathOf(app.server, task.key))).toMatchObject({ repo: 'acme/private' })
    } finally {
      await app.server.stop()
    }
  })

  it('asks for a new token when the last one is about to end', async () => {
    const app = await appServer()
    try {
      // Given back a minute early, so this one is never kept.
      app.state.lastsMs = 59_000
      const task = await taskWithPull(app.server)
      showPull()
      await app.server.ok(pathOf(app.server, task.key))
      const before = app.state.minted
      await app.server.ok(pathOf(app.server, task.key))
      expect(app.state.minted).toBeGreaterThan(before)
    } finally {
      await app.server.stop()
    }
  })

  it('whose key cannot be read stops the start with a sentence', async () => {
    const bad = join(folder, 'bad.pem')
    writeFileSync(bad, 'no key')
    const ec = join(folder, 'ec.pem')
    writeFileSync(ec, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
    for (const file of [join(folder, 'missing.pem'), bad, ec]) {
      const settings = { SVC_GITHUB_APP_ID: '1', SVC_GITHUB_APP_KEY_FILE: file }
      await expect(TestServer.start({ settings })).rejects.toThrow(/SVC_GITHUB_APP_KEY_FILE/)
    }
  })

  async function appServer() {
    const state = {
      key: publicKeyOf(appKey),
      id: '12345',
      installed: new Set(['acme/web']),
      minted: 0,
      lastsMs: 3_600_000,
    }
    github.app = state
    const settings = {
      SVC_GITHUB_API_URL: github.apiUrl,
      SVC_GITHUB_APP_ID: '12345',
      SVC_GITHUB_APP_KEY_FILE: appKeyFile,
      SVC_GITHUB_WEBHOOK_SECRET: webhookSecret,
    }
    return { server: await TestServer.start({ settings }), state }
  }
})
