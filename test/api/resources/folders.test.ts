import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FolderCheck, type FolderFacts, watchedFolders } from '../../../shared/device/folder-check.ts'
import { enrol, FakeDevice, type Identity } from '../../kit/fake-device.ts'
import { newRepo } from '../facts/kit/recipe.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

let server: TestServer
let other: Person
let device: Identity
beforeAll(async () => {
  server = await TestServer.start()
  other = await server.addPerson('admin')
  device = await enrol(server)
})
afterAll(() => server.stop())

const add = (body: Record<string, unknown> = {}, token?: string) =>
  server.call('/folders', {
    body: { displayName: 'site', rootPath: '/home/me/site', deviceId: device.publicId, ...body },
    ...(token === undefined ? {} : { token }),
  })
const patch = (id: string, body: unknown, token?: string) =>
  server.call(`/folders/${id}`, { method: 'PATCH', body, ...(token === undefined ? {} : { token }) })
const make = async (body: Record<string, unknown> = {}) => (await add(body)).body.shortId as string

test('agents call none of the routes', async () => {
  const token = await server.runToken(await server.startRun((await server.createAgent()).id))
  const id = 'fs_0000000000000000'
  for (const reply of [
    await server.call('/folders', { token }),
    await add({}, token),
    await patch(id, { repoId: null }, token),
    await server.call(`/folders/${id}`, { method: 'DELETE', token }),
    await server.call(`/folders/${id}/git-remote`, { token }),
  ])
    expect(outcomeOf(reply)).toBe('403 http_exception')
})

describe('create', () => {
  test('takes the device by either id', async () => {
    for (const deviceId of [device.publicId, device.deviceId, device.deviceId.toUpperCase()]) {
      const reply = await add({ deviceId })
      expect(reply.status).toBe(201)
      expect(reply.body).toEqual({
        shortId: expect.stringMatching(/^fs_[0-9A-Za-z]{16}$/),
        displayName: 'site',
        config: { deviceId: device.publicId, rootPath: '/home/me/site', bindingState: 'active' },
        status: 'disconnected',
        state: null,
        branch: null,
        repoId: null,
        createdAt: expect.any(String),
      })
    }
    expect((await add({ rootPath: 'C:\\code' })).status).toBe(201)
  })

  test('refuses what does not fit and devices that are not there or not the caller’s', async () => {
    for (const body of [
      { rootPath: 'code' },
      { rootPath: '~/code' },
      { rootPath: '' },
      { displayName: '' },
      { deviceId: 'x' },
    ])
      expect([body, outcomeOf(await add(body))]).toEqual([body, '400 validation_error'])
    for (const deviceId of ['dvc_0000000000000000', crypto.randomUUID()]) {
      const reply = await add({ deviceId })
      expect([reply.status, reply.body]).toEqual([404, { error: 'Device not found' }])
    }
    const refused = await add({}, other.token)
    expect([refused.status, refused.body]).toEqual([403, { error: 'Device not owned by the caller' }])
    const foreign = await server.addPerson('owner', 'elsewhere')
    expect((await add({}, foreign.token)).status).toBe(404)
  })
})

test('the status follows the device: active, disconnected, revoked', async () => {
  const person = await server.addPerson('member')
  const live = await FakeDevice.connect(server, { token: person.token })
  await add({ deviceId: live.identity.publicId, displayName: 'first' }, person.token)
  await add({ deviceId: live.identity.publicId, displayName: 'second' }, person.token)
  const listed = async () => (await server.ok('/folders', { token: person.token })).sources
  expect(await listed()).toMatchObject([
    { displayName: 'second', status: 'active' },
    { displayName: 'first', status: 'active' },
  ])
  server.world.advance(91_000)
  expect((await listed())[0].status).toBe('disconnected')
  server.world.advance(-91_000)
  await server.call(`/devices/${live.identity.deviceId}`, { method: 'DELETE', token: person.token })
  expect((await listed())[0]).toMatchObject({
    status: 'revoked',
    config: { deviceId: live.identity.publicId, bindingState: 'manual_rebind_required' },
  })
  // Folders are their person's.
  expect((await server.ok('/folders', { token: other.token })).sources).toEqual([])
})

test('a device is told of its folders, and what it finds there is shown while it is connected', async () => {
  const person = await server.addPerson('member')
  const identity = await enrol(server, { token: person.token })
  const ask = (path: string, options = {}) => server.ok(path, { token: person.token, ...options })
  const body = (rootPath: string) => ({ displayName: 'x', rootPath, deviceId: identity.publicId })
  const { shortId } = await ask('/folders', { body: body('/srv/one') })
  const live = await FakeDevice.open(server, identity)
  const one = { shortId, rootPath: '/srv/one' }
  expect((await live.next('welcome')).folders).toEqual([one])
  server.world.advance(1)
  const later = await ask('/folders', { body: body('/srv/two') })
  const two = { shortId: later.shortId, rootPath: '/srv/two' }
  expect((await live.next('config.changed')).folders).toEqual([one, two])
  const harnesses = {}
  const tell = (folders: Record<string, FolderFacts>) =>
    live.send({ type: 'readiness', providerReadiness: { harnesses, folders }, capturedAt: server.world.now() })
  const listed = async () => (await ask('/folders')).sources
  tell({ [shortId]: { state: 'ok', branch: 'main' }, fs_of_nobody: { state: 'ok', branch: 'x' } })
  await expect.poll(async () => (await listed())[1]).toMatchObject({ state: 'ok', branch: 'main', status: 'active' })
  expect((await listed())[0]).toMatchObject({ shortId: two.shortId, state: null, branch: null })
  const bindingOf = async () => (await listed())[1].config.bindingState
  expect(await bindingOf()).toBe('active')
  for (const [state, binding] of [
    ['missing', 'manual_rebind_required'],
    ['not_permitted', 'active'],
    ['not_a_directory', 'manual_rebind_required'],
    ['ok', 'active'],
    ['missing', 'manual_rebind_required'],
  ] as const) {
    tell({ [shortId]: { state, branch: null } })
    await expect.poll(async () => (await listed())[1]).toMatchObject({ state, branch: null })
    expect(await bindingOf()).toBe(binding)
  }
  await server.call(`/folders/${shortId}`, { method: 'DELETE', token: person.token })
  expect((await live.next('config.changed')).folders).toEqual([two])
  tell({ [two.shortId]: { state: 'ok', branch: 'main' } })
  await expect.poll(async () => (await listed())[0].state).toBe('ok')
  server.world.advance(91_000)
  expect((await listed())[0]).toMatchObject({ status: 'disconnected', state: null, branch: null })
  server.world.advance(-91_000)
})

test('a device has a thousand folders at most', async () => {
  const person = await server.addPerson('member')
  const { publicId: deviceId } = await enrol(server, { token: person.token })
  const first = (await add({ deviceId }, person.token)).body.shortId as string
  const row = await server.database.root('folders').where({ short_id: first }).first()
  const more = Array.from({ length: 999 }, (_, n) => ({ ...row, short_id: `fs_full${n}` }))
  for (let at = 0; at < more.length; at += 333) await server.database.root('folders').insert(more.slice(at, at + 333))
  expect(outcomeOf(await add({ deviceId }, person.token))).toBe('400 validation_error')
  await server.ok(`/folders/${first}`, { method: 'DELETE', token: person.token })
  expect((await add({ deviceId }, person.token)).status).toBeLessThan(300)
})

test('of more folders than a device watches it is told the first', async () => {
  const person = await server.addPerson('member')
  const identity = await enrol(server, { token: person.token })
  for (let count = 0; count <= watchedFolders; count++) {
    server.world.advance(1)
    await add({ deviceId: identity.publicId, rootPath: `/srv/${count}` }, person.token)
  }
  const live = await FakeDevice.open(server, identity)
  const { folders = [] } = await live.next('welcome')
  expect(folders.map(({ rootPath }) => rootPath)).toEqual(
    Array.from({ length: watchedFolders }, (_, at) => `/srv/${at}`),
  )
  const facts = Object.fromEntries(
    Array.from({ length: watchedFolders + 1 }, (_, at) => [`fs_${at}`, { state: 'ok', branch: null } as const]),
  )
  live.send({ type: 'readiness', providerReadiness: { harnesses: {}, folders: facts }, capturedAt: 0 })
  expect(await live.closed).toBe(4002)
})

describe('change', () => {
  test('sets and clears the repo; one folder of a device holds it', async () => {
    const [a, b] = [await make(), await make()]
    const repoId = await newRepo({ server })
    expect((await patch(a, { repoId: repoId.toUpperCase() })).body.repoId).toBe(repoId)
    expect((await patch(a, { repoId })).status).toBe(200)
    const refused = await patch(b, { repoId })
    expect(outcomeOf(refused)).toBe('409 repo_already_mapped')
    expect(refused.body.error.details).toEqual({ folder: a })
    const elsewhere = await make({ deviceId: (await enrol(server)).publicId })
    expect((await patch(elsewhere, { repoId })).status).toBe(200)
    expect((await patch(a, { repoId: null })).body.repoId).toBeNull()
    expect((await patch(b, { repoId })).status).toBe(200)
    expect(outcomeOf(await patch(a, { repoId: 'none' }))).toBe('400 validation_error')
    const foreign = await newRepo({ server }, (await server.addPerson('owner', 'elsewhere')).token)
    for (const unknown of [foreign, crypto.randomUUID()])
      expect(outcomeOf(await patch(a, { repoId: unknown }))).toBe('404 repo_not_found')
    expect(
      (await server.ok('/folders')).sources.find((each: { shortId: string }) => each.shortId === a).repoId,
    ).toBeNull()
    expect(outcomeOf(await patch(a, {}))).toBe('400 validation_error')
  })

  test('a removed folder frees its repo and is gone', async () => {
    const [a, b] = [await make(), await make()]
    const repoId = await newRepo({ server })
    await patch(a, { repoId })
    const removed = await server.call(`/folders/${a}`, { method: 'DELETE' })
    expect([removed.status, removed.body]).toEqual([204, null])
    expect((await patch(b, { repoId })).status).toBe(200)
    expect(outcomeOf(await server.call(`/folders/${a}`, { method: 'DELETE' }))).toBe('404 resource_not_found')
    expect((await server.ok('/folders')).sources.map((folder: { shortId: string }) => folder.shortId)).not.toContain(a)
  })

  test('folders of others, unknown ones and malformed ids', async () => {
    const own = await make()
    for (const [id, token] of [
      [own, other.token],
      ['fs_0000000000000000', undefined],
    ] as const) {
      expect(outcomeOf(await patch(id, { repoId: null }, token))).toBe('404 resource_not_found')
      const options = token === undefined ? {} : { token }
      expect(outcomeOf(await server.call(`/folders/${id}`, { method: 'DELETE', ...options }))).toBe(
        '404 resource_not_found',
      )
      expect(outcomeOf(await server.call(`/folders/${id}/git-remote`, options))).toBe('404 resource_not_found')
    }
    expect(outcomeOf(await patch('site', { repoId: null }))).toBe('400 invalid_id_format')
    expect(outcomeOf(await server.call('/folders/site', { method: 'DELETE' }))).toBe('400 invalid_id_format')
    expect(outcomeOf(await server.call('/folders/site/git-remote'))).toBe('400 invalid_id_format')
  })
})

test('the git remote is asked of the device', async () => {
  const live = await FakeDevice.connect(server)
  const shortId = await make({ deviceId: live.identity.publicId })
  const remote = async () => server.ok(`/folders/${shortId}/git-remote`)
  const check: FolderCheck = {
    rootPath: '/home/me/site',
    state: 'ok',
    realPath: '/home/me/site',
    isSymlink: false,
    writable: true,
    git: {
      topLevel: '/home/me/site',
      branch: 'main',
      commit: 'c'.repeat(40),
      remotes: [
        { name: 'fork', url: 'https://example.com/fork.git' },
        { name: 'origin', url: 'https://example.com/site.git' },
      ],
    },
    message: null,
  }
  live.folderAnswer = (rootPath) => ({ ...check, rootPath })
  expect(await remote()).toEqual({
    shortId,
    state: 'ok',
    url: 'https://example.com/site.git',
    remotes: check.git!.remotes,
    branch: 'main',
    commit: 'c'.repeat(40),
    repoId: null,
  })
  live.folderAnswer = () => ({ ...check, git: { ...check.git!, remotes: [check.git!.remotes[0]!] } })
  expect((await remote()).url).toBe('https://example.com/fork.git')
  live.folderAnswer = () => ({ ...check, state: 'missing', realPath: null, writable: false, git: null })
  expect(await remote()).toMatchObject({ state: 'missing', url: null, remotes: [], branch: null, commit: null })
  await live.disconnect()
  await expect.poll(remote).toMatchObject({ state: 'device_disconnected', url: null, remotes: [] })
})
