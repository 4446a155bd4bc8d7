import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const add = (gitRemote: string, more: Record<string, unknown> = {}, token?: string) =>
  server.call('/repos', { body: { gitRemote, ...more }, ...(token === undefined ? {} : { token }) })

test('a repo is added by its remote, once in whichever form, listed by name and removed', async () => {
  const added = await add('git@GitHub.com:Acme/Web.git', { defaultBranch: 'main' }, member.token)
  expect([added.status, added.body]).toEqual([
    201,
    {
      object: 'repo',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'acme/web',
      gitRemote: 'github.com/acme/web',
      defaultBranch: 'main',
      provider: 'github',
      host: 'github.com',
      createdAt: expect.any(String),
    },
  ])
  expect(outcomeOf(await add('https://github.com/acme/web'))).toBe('409 duplicate_resource')
  const app = (await add('https://gitlab.example.com/acme/app')).body
  const { token } = await server.agentCaller()
  expect((await server.ok('/repos', { token })).data).toEqual([app, added.body])
  const elsewhere = await server.addPerson('owner', 'elsewhere')
  expect((await server.ok('/repos', { token: elsewhere.token })).data).toEqual([])
  const remove = (id: string, by: string) => server.call(`/repos/${id}`, { method: 'DELETE', token: by })
  expect(outcomeOf(await remove(app.id, member.token))).toBe('403 http_exception')
  expect(outcomeOf(await remove(app.id, elsewhere.token))).toBe('404 resource_not_found')
  expect((await remove(app.id, server.owner.token)).status).toBe(204)
  expect(outcomeOf(await remove(app.id, server.owner.token))).toBe('404 resource_not_found')
  expect(outcomeOf(await remove('x', server.owner.token))).toBe('400 invalid_id_format')
})

test('what is no remote is refused, and agents add none', async () => {
  for (const gitRemote of ['', 'acme/web', '/srv/web.git', 'https://github.com/acme', 'x'.repeat(2_001)])
    expect([gitRemote, outcomeOf(await add(gitRemote))]).toEqual([gitRemote, '400 validation_error'])
  const { token } = await server.agentCaller()
  expect(outcomeOf(await add('github.com/a/b', {}, token))).toBe('403 http_exception')
})

test('a folder tells the repo that its remote names', async () => {
  const repo = (await add('https://github.com/acme/folder')).body
  const device = await FakeDevice.connect(server, { token: member.token })
  const folder = await server.ok('/folders', {
    token: member.token,
    body: { displayName: 'x', rootPath: '/x', deviceId: device.identity.publicId },
  })
  let url = 'ssh://git@github.com/Acme/Folder.git'
  device.folderAnswer = (rootPath) => ({
    rootPath,
    state: 'ok',
    realPath: rootPath,
    isSymlink: false,
    writable: true,
    git: { topLevel: rootPath, branch: 'main', commit: null, remotes: [{ name: 'origin', url }] },
    message: null,
  })
  const told = () => server.ok(`/folders/${folder.shortId}/git-remote`, { token: member.token })
  expect(await told()).toMatchObject({ url, repoId: repo.id })
  url = 'https://github.com/acme/unknown'
  expect(await told()).toMatchObject({ url, repoId: null })
  await device.disconnect()
})

test('a workspace has five thousand repos at most, all of which are listed; a list of an older one says what it leaves out', async () => {
  const full = await server.addPerson('owner', 'full-of-repos')
  const first = (await add('https://github.com/acme/0', {}, full.token)).body
  const row = await server.database.root('repos').where({ id: first.id }).first()
  for (let at = 1; at < 5_000; at += 500) {
    const ids = Array.from({ length: Math.min(500, 5_000 - at) }, (_, n) => `github.com/acme/${at + n}`)
    await server.database
      .root('repos')
      .insert(ids.map((git_remote) => ({ ...row, id: crypto.randomUUID(), git_remote })))
  }
  expect(outcomeOf(await add('https://github.com/acme/more', {}, full.token))).toBe('400 validation_error')
  const list = async () => {
    const { data, hasMore } = await server.ok('/repos', { token: full.token })
    return [data.length, hasMore]
  }
  expect(await list()).toEqual([5_000, false])
  await server.database.root('repos').insert({ ...row, id: crypto.randomUUID(), git_remote: 'github.com/acme/older' })
  expect(await list()).toEqual([5_000, true])
})
