import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createGithubClient } from '../../../control-plane/github/client.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { insertBinding } from '../../../control-plane/resources/repos/binding-store.ts'
import { listSpecs } from '../../../control-plane/resources/runs/details-store.ts'
import { insertSandbox } from '../../../control-plane/resources/sandboxes/store.ts'
import { findPermit } from '../../../control-plane/sandbox/broker/permits.ts'
import { variablesFor } from '../../../control-plane/sandbox/broker/repo-access.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { sharedOf, startEngineless } from '../../kit/engineless.ts'
import { publicKeyOf, startFakeGithub } from '../../kit/fake-github.ts'
import type { TestServer } from '../../kit/server.ts'
import { sandboxRow } from '../../store/sandbox-rows.ts'
import { seedWorkspace } from '../../store/seed.ts'

let server: TestServer
beforeAll(async () => {
  server = await startEngineless({})
})
afterAll(() => server.stop())

const headers = () => ({ 'idempotency-key': server.world.uuid() })
const addRepo = async (gitRemote: string, defaultBranch: string | null = null) =>
  (await server.ok('/repos', { body: { gitRemote, defaultBranch } })).id as string

async function wake(settings: object, task: object | null = null, secrets: Record<string, string> = {}) {
  const plain = { environment: 'cloud', harness: 'command', command: 'true' }
  const { id: agentId } = await server.createAgent({ ...plain, ...settings })
  for (const [envVarName, value] of Object.entries(secrets)) {
    const body = { name: `${envVarName}-${server.world.uuid()}`, envVarName, value }
    const { id } = await server.ok('/secrets', { body, headers: headers() })
    await server.ok(`/secrets/${id}/grants`, { body: { agentId }, headers: headers() })
  }
  const of = task && (await server.ok('/tasks', { body: { title: server.world.uuid(), ...task }, headers: headers() }))
  const body = { prompt: 'Build', ...(of && { taskId: of.id }) }
  const runId = (await server.ok(`/agents/${agentId}/runs`, { body })).runPublicId as string
  return { runId, key: of?.key as string | undefined }
}

const repoOf = async (runId: RunId) => (await listSpecs(server.database.root, [runId])).get(runId)!.repo ?? null
const cwdOf = async (runId: string) => (await server.ok(`/runs/${runId}`)).environment.cwd as string

describe('the repository of a cloud run', () => {
  test('is that of its task, with the branches of the task', async () => {
    const [own, ofTask] = [
      await addRepo('https://git.example.com/a/own'),
      await addRepo('https://github.com/A/Task', 'trunk'),
    ]
    const named = await wake({ defaultRepoId: own }, { repoId: ofTask, baseBranch: 'release', branchName: 'feature/x' })
    expect(await repoOf(idFrom(named.runId))).toEqual({
      id: ofTask,
      address: 'https://github.com/A/Task.git',
      baseBranch: 'release',
      branch: 'feature/x',
      rescueBranch: `svc/rescue/${named.runId}`,
    })
    const plain = await wake({ defaultRepoId: own }, { repoId: ofTask })
    expect(await repoOf(idFrom(plain.runId))).toMatchObject({
      id: ofTask,
      baseBranch: 'trunk',
      branch: `svc/${plain.key}`,
    })
    expect(await cwdOf(plain.runId)).toBe('repo-root')
    expect((await server.ok(`/runs/${plain.runId}/manifest`)).repo).toEqual({
      id: ofTask,
      baseBranch: 'trunk',
      branch: `svc/${plain.key}`,
      rescueBranch: `svc/rescue/${plain.runId}`,
    })
  })

  test('is never pushed to the branch that others work from', async () => {
    const repoId = await addRepo('https://github.com/A/Shared', 'trunk')
    for (const branches of [{ branchName: 'trunk' }, { branchName: 'release', baseBranch: 'release' }]) {
      const { runId, key } = await wake({}, { repoId, ...branches })
      expect((await repoOf(idFrom(runId)))!.branch).toBe(`svc/${key}`)
    }
  })

  test("is else the agent's own, and else there is none", async () => {
    const own = await addRepo('git@git.example.com:b/own.git')
    const { runId, key } = await wake({ defaultRepoId: own }, {})
    expect(await repoOf(idFrom(runId))).toMatchObject({
      id: own,
      address: 'https://git.example.com/b/own.git',
      baseBranch: null,
      branch: `svc/${key}`,
    })
    const alone = await wake({ defaultRepoId: own })
    expect(await repoOf(idFrom(alone.runId))).toMatchObject({ branch: `svc/${alone.runId}` })
    const without = await wake({})
    expect([await repoOf(idFrom(without.runId)), await cwdOf(without.runId)]).toEqual([null, 'sandbox-root'])
    const { id: agentId } = await server.createAgent({
      environment: 'cloud',
      harness: 'command',
      command: 'true',
      defaultRepoId: own,
    })
    await server.ok(`/repos/${own}`, { method: 'DELETE' })
    const { runPublicId } = await server.ok(`/agents/${agentId}/runs`, { body: { prompt: 'Build' } })
    // Its runner says that it is gone, and starts nothing.
    expect(await repoOf(idFrom(runPublicId as string))).toMatchObject({ id: own, address: null })
  })
})

describe('what a run may reach of its repository', () => {
  const permitOf = async (runId: string, gitHost: Parameters<typeof findPermit>[0]['gitHost'] = null) => {
    const { root } = server.database
    const row = sandboxRow(server.owner.workspaceId, { runId: idFrom(runId) })
    await insertSandbox(root, row)
    const none = { url: 'https://models.test', key: null }
    const shared = sharedOf(server)
    const models = { anthropic: none, openai: none }
    return () => findPermit({ ...shared, root, world: server.world, log: silentLog, models, gitHost }, row.id)
  }

  test.each([
    [
      'a token for its host',
      'https://git-x.example.com/t/a',
      'REPO_GIT__X_EXAMPLE_COM_TOKEN',
      'tok',
      { user: 'git', secret: 'tok' },
    ],
    [
      'a name and a password',
      'https://h.example.com/t/b',
      'REPO_H_EXAMPLE_COM_TOKEN',
      'me:p:w',
      { user: 'me', secret: 'p:w' },
    ],
    [
      'the usual one of GitHub',
      'https://github.com/t/c',
      'GITHUB_TOKEN',
      'ghp',
      { user: 'x-access-token', secret: 'ghp' },
    ],
    ['the usual one of GitLab', 'https://gitlab.com/t/d', 'GITLAB_TOKEN', 'glp', { user: 'oauth2', secret: 'glp' }],
    ['one of another host', 'https://github.com.example.com/t/e', 'GITHUB_TOKEN', 'ghp', null],
    ['one of another port', 'https://h.example.com:8443/t/f', 'REPO_H_EXAMPLE_COM_TOKEN', 'tok', null],
    ['one of a host with other marks', 'https://git.x.example.com/t/g', 'REPO_GIT__X_EXAMPLE_COM_TOKEN', 'tok', null],
  ])('by %s', async (_name, remote, envVarName, value, credential) => {
    const { runId } = await wake({ defaultRepoId: await addRepo(remote) }, null, { [envVarName]: value })
    const permit = await (await permitOf(runId))()
    expect(await permit!.repo!.credential()).toEqual(credential)
  })

  test("by the server's connection, where the operator bound the repository", async () => {
    const asked: string[] = []
    const tokenFor = async (repository: string) => {
      asked.push(repository)
      return 'of-the-server'
    }
    const gitHost = { host: 'ghe.example.com', tokenFor }
    const id = await addRepo('https://ghe.example.com/Acme/Web')
    const { runId } = await wake({ defaultRepoId: id })
    const permit = await permitOf(runId, gitHost)
    // A server's only workspace reaches them all.
    expect(await (await permit())!.repo!.credential()).toEqual({ user: 'x-access-token', secret: 'of-the-server' })
    const { root } = server.database
    await seedWorkspace(root)
    expect(await (await permit())!.repo!.credential()).toBe(null)
    await insertBinding(root, { workspaceId: server.owner.workspaceId, repository: 'acme/*', at: 1 })
    expect(await (await permit())!.repo!.credential()).toEqual({ user: 'x-access-token', secret: 'of-the-server' })
    const plain = await wake({ defaultRepoId: await addRepo('http://ghe.example.com/acme/clear') })
    expect(await (await (await permitOf(plain.runId, gitHost))())!.repo!.credential()).toBe(null)
    expect(new Set(asked)).toEqual(new Set(['acme/web']))
  })

  test('is its rescue branch alone once it is over, and nothing once the repository is gone', async () => {
    const id = await addRepo('https://git.example.com/t/over')
    const { runId } = await wake({ defaultRepoId: id })
    const permit = await permitOf(runId)
    expect(await permit()).toMatchObject({ repo: { branch: `svc/${runId}`, url: 'https://git.example.com/t/over' } })
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(await permit()).toMatchObject({
      model: null,
      egress: new Set(),
      repo: { branch: null, rescueBranch: `svc/rescue/${runId}` },
    })
    await server.ok(`/repos/${id}`, { method: 'DELETE' })
    expect(await permit()).toBe(null)
  })

  test('no two hosts have one name of a variable', () => {
    const hosts = ['a-b.c', 'a.b.c', 'a--b.c', 'a.b-c', 'a-b-c', 'a.b.c:1']
    const names = hosts.map((host) => variablesFor(new URL(`https://${host}/`))[0])
    expect(new Set(names).size).toBe(hosts.length)
  })
})

test('a GitHub App gives git a token for the one repository, and keeps it until it is nearly over', async () => {
  const github = await startFakeGithub()
  const folder = mkdtempSync(join(tmpdir(), 'svc-app-'))
  onTestFinished(async () => {
    await github.stop()
    rmSync(folder, { recursive: true })
  })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const keyFile = join(folder, 'key.pem')
  writeFileSync(keyFile, pem)
  github.app = { key: publicKeyOf(pem), id: '1', installed: new Set(['acme/web']), minted: 0, lastsMs: 3_600_000 }
  const auth = { kind: 'app', appId: '1', keyFile } as const
  const client = createGithubClient({ apiUrl: github.apiUrl, auth, webhookSecret: null }, realWorld)!
  const first = await client.gitToken('acme/web')
  expect(first).toEqual(expect.any(String))
  expect(await client.gitToken('acme/web')).toBe(first)
  expect(github.app.minted).toBe(1)
  expect(github.minting).toEqual([{ repositories: ['web'], permissions: { contents: 'write' } }])
  expect(await client.gitToken('acme/none')).toBe(null)
  github.app.lastsMs = 61_000
  await expect(client.gitToken('acme/../web')).rejects.toThrow(/not the name/)
})
