import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { bindRepository, shownBindings, unbindRepository } from '../../../control-plane/operator/repos.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { deliver, mergedPayload, pullOf, sha, type FakeGithub } from '../../kit/fake-github.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { startWithGithub, workedOff } from './github-kit.ts'

// Whoever makes a workspace of their own reaches nothing by the operator's credentials (docs/trust.md).

let github: FakeGithub, server: TestServer, stop: () => Promise<void>
let stranger: Person
const theirs = { workspace: 'elsewhere', repository: 'acme/web' }
beforeAll(async () => {
  ;({ github, server, stop } = await startWithGithub())
  stranger = await server.addPerson('owner', theirs.workspace)
})
afterAll(() => stop())
beforeEach(() => {
  github.answers.clear()
  github.asked.length = 0
  github.answers.set('/acme/web/pulls', [{ number: 3 }])
  github.answers.set('/acme/web/pulls/3', pullOf('acme/web', { number: 3 }))
  github.answers.set(`/acme/web/commits/${sha('a')}/check-runs`, { check_runs: [] })
  github.answers.set(`/acme/web/commits/${sha('a')}/status`, { statuses: [] })
})

const operator = <T>(work: (db: TestServer['database']['root']) => Promise<T>) => work(server.database.root)

async function pullRequestOf(person: Person) {
  const repo = await server.call('/repos', { body: { gitRemote: '127.0.0.1/acme/web' }, token: person.token })
  const repoId = repo.body.id ?? (await server.ok('/repos', { token: person.token })).data[0].id
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  const body = { title: crypto.randomUUID(), branchName: 'feature', repoId }
  const task = await server.ok('/tasks', { body, token: person.token, headers })
  return server.call(`/workspaces/${person.workspaceId}/tasks/${task.key}/pull-request`, { token: person.token })
}

const automate = async (person: Person) => {
  const agent = await server.createAgent({}, person.token)
  const trigger = { event: 'pull_request.merged', repo: 'acme/web' }
  const body = { name: crypto.randomUUID(), trigger, agentId: agent.id, prompt: 'p' }
  return server.call('/automations', { body, token: person.token })
}

test('only what the operator bound to a workspace is read for it', async () => {
  expect(outcomeOf(await pullRequestOf(stranger))).toBe('404 resource_not_found')
  expect(github.asked).toEqual([])
  expect(outcomeOf(await automate(stranger))).toBe('400 github_not_installed')
  // What the workspace reached before anybody made another one, it still reaches.
  expect(outcomeOf(await pullRequestOf(server.owner))).toBe('200')
  expect(await operator(shownBindings)).toMatchObject({ bindings: [{ workspace: 'main', repository: '*' }] })

  await operator((db) => bindRepository(db, realWorld, { ...theirs, repository: ' ACME/Web ' }))
  expect(outcomeOf(await pullRequestOf(stranger))).toBe('200')
  const made = await automate(stranger)
  expect(outcomeOf(made)).toBe('201')
  const fires = async () => server.ok(`/automations/${made.body.id}/runs`, { token: stranger.token })
  const merge = async (number: number) => {
    const id = crypto.randomUUID()
    const payload = mergedPayload('acme/web', { number, title: `Number ${number}` })
    await deliver(server.url, { event: 'pull_request', payload, id })
    await workedOff(server, id)
  }
  await merge(4)
  expect((await fires()).data).toHaveLength(1)

  await operator((db) => unbindRepository(db, theirs))
  await merge(5)
  expect((await fires()).data).toHaveLength(1)
  expect(outcomeOf(await pullRequestOf(stranger))).toBe('404 resource_not_found')
})

test('the operator is told what is wrong', async () => {
  for (const [named, words] of [
    [{ ...theirs, workspace: 'nowhere' }, 'There is no workspace nowhere.'],
    [{ ...theirs, repository: 'https://github.com/acme/web' }, 'names no repository'],
  ] as const)
    await expect(operator((db) => bindRepository(db, realWorld, named))).rejects.toThrow(words)
  await expect(operator((db) => unbindRepository(db, theirs))).rejects.toThrow('acme/web is not bound to elsewhere.')
})
