import { version } from '../../../shared/lib/version.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createToken } from '../../../control-plane/operator/people.ts'
import { closeCodes } from '../../../shared/device/limits.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { outcomeOf, TestServer, type CallOptions, type Person } from '../../kit/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const auth = (path: string, options: CallOptions = {}) =>
  server.call(`/auth/tokens${path}`, { base: '/api', ...options })
const give = (person: Person, name: string) =>
  server.database.root.transaction((tx) =>
    createToken(tx, server.world, { email: person.email, workspace: null, name }),
  )
// oxlint-disable-next-line typescript/no-explicit-any
const idsOf = ({ body }: { body: any }) => body.data.map(({ id }: { id: string }) => id)

test('people read who they are, by a login token and in a browser; agents and strangers do not', async () => {
  const me = (options: CallOptions) => server.call('/auth/me', { base: '/api', ...options })
  const { token, userId, email, workspaceId } = await server.addPerson('admin')
  expect((await me({ token })).body).toEqual({
    userId,
    name: 'admin',
    email,
    workspaceId,
    role: 'admin',
    release: version,
  })
  const browser = await signedIn(server, email)
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  expect((await me({ token: null, headers: { cookie } })).body).toMatchObject({ userId })
  const agent = await server.agentCaller()
  expect([(await me({ token: null })).status, (await me({ token: agent.token })).status]).toEqual([401, 403])
})

test('people list their own tokens of the workspace, page by page, and admins those of everybody', async () => {
  const [person, admin] = [await server.addPerson('member'), await server.addPerson('admin')]
  const elsewhere = await server.addPerson('owner', 'elsewhere')
  server.world.advance(1_000)
  const laptop = await give(person, 'laptop')
  const { body } = await auth('', { token: person.token })
  expect(body).toMatchObject({ object: 'list', hasMore: false, nextCursor: null })
  expect(body.data).toEqual([
    {
      id: laptop.tokenId,
      name: 'laptop',
      userId: person.userId,
      email: person.email,
      workspaceId: person.workspaceId,
      createdAt: expect.any(String),
      lastUsedAt: null,
      expiresAt: null,
      isCurrent: false,
    },
    expect.objectContaining({ name: 'user add', isCurrent: true, lastUsedAt: expect.any(String) }),
  ])
  const first = await auth('?limit=1', { token: person.token })
  expect([idsOf(first), first.body.hasMore]).toEqual([[laptop.tokenId], true])
  const second = await auth(`?limit=1&after=${first.body.nextCursor}`, { token: person.token })
  expect([idsOf(second), second.body.hasMore]).toEqual([[body.data[1].id], false])
  const all = idsOf(await auth('?all=true&limit=100', { token: admin.token }))
  expect(all).toEqual(expect.arrayContaining(idsOf({ body })))
  expect(all).not.toEqual(expect.arrayContaining(idsOf(await auth('', { token: elsewhere.token }))))
  expect(outcomeOf(await auth('?all=true', { token: person.token }))).toBe('403 http_exception')
  expect(outcomeOf(await auth('?limit=0'))).toBe('400 validation_error')
  expect(outcomeOf(await auth('?after=x'))).toBe('400 invalid_cursor')
  expect(JSON.stringify((await auth('?all=true')).body)).not.toContain('svc_pat_')
})

test('a person revokes own tokens, an admin anybody’s of the workspace, and they stop working at once', async () => {
  const [person, admin] = [await server.addPerson('member'), await server.addPerson('admin')]
  const { token, tokenId } = await give(person, 'lost')
  const revoke = (id: string, caller: Person) => auth(`/${id}`, { method: 'DELETE', token: caller.token })
  const [other, stranger] = [await server.addPerson('member'), await server.addPerson('owner', 'elsewhere')]
  for (const nobody of [other, stranger])
    expect(outcomeOf(await revoke(tokenId, nobody))).toBe('404 resource_not_found')
  expect(outcomeOf(await revoke('tok_0000000000000000', person))).toBe('404 resource_not_found')
  expect(outcomeOf(await revoke('lost', person))).toBe('400 invalid_id_format')
  expect(outcomeOf(await server.call('/workspaces', { token }))).toBe('200')
  expect((await revoke(tokenId, person)).body).toEqual({ id: tokenId, revoked: true })
  expect(outcomeOf(await server.call('/workspaces', { token }))).toBe('401 auth_invalid')
  expect(outcomeOf(await revoke(tokenId, person))).toBe('404 resource_not_found')
  expect(idsOf(await auth('', { token: person.token }))).not.toContain(tokenId)
  const second = await give(person, 'lost, too')
  expect((await revoke(second.tokenId, admin)).status).toBe(200)
  expect(outcomeOf(await server.call('/workspaces', { token: second.token }))).toBe('401 auth_invalid')
})

test('an admin sees the devices of everybody in the workspace, and puts them out with their runs', async () => {
  const [person, admin] = [await server.addPerson('member'), await server.addPerson('admin')]
  const stranger = await server.addPerson('owner', 'elsewhere')
  const device = await FakeDevice.connect(server, { token: person.token })
  const { publicId } = device.identity
  const runId = await server.startRun((await server.createAgent({}, person.token)).id, {}, person.token)
  await device.take()
  const devices = (token: string, path = '', method = 'GET') =>
    server.call(`/auth/devices${path}`, { base: '/api', method, token })
  const { body } = await devices(admin.token)
  expect(body.devices).toContainEqual({
    id: publicId,
    name: expect.any(String),
    userId: person.userId,
    email: person.email,
    lastSeenAt: expect.anything(),
  })
  expect(outcomeOf(await devices(person.token))).toBe('403 http_exception')
  expect(outcomeOf(await devices(person.token, `/${publicId}`, 'DELETE'))).toBe('403 http_exception')
  expect(outcomeOf(await devices(stranger.token, `/${publicId}`, 'DELETE'))).toBe('404 resource_not_found')
  expect((await devices(admin.token, `/${publicId}`, 'DELETE')).body).toEqual({ id: publicId, revoked: true })
  expect(await device.closed).toBe(closeCodes.revoked.code)
  expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'failed', exitReason: 'runner_lost' })
  expect(outcomeOf(await devices(admin.token, `/${publicId}`, 'DELETE'))).toBe('404 resource_not_found')
})

test('a browser may do so too, from this site; an agent may not', async () => {
  const person = await server.addPerson('member')
  const { tokenId } = await give(person, 'lost')
  const { cookieHeader: cookie } = await signedIn(server, person.email)
  const bySession = (path: string, more: CallOptions) =>
    auth(path, { ...more, token: null, headers: { cookie, ...more.headers } })
  expect(idsOf(await bySession('', {}))).toContain(tokenId)
  const foreign = { method: 'DELETE', headers: { origin: 'https://evil.example' } }
  expect(outcomeOf(await bySession(`/${tokenId}`, foreign))).toBe('403 http_exception')
  expect(outcomeOf(await bySession(`/${tokenId}`, { method: 'DELETE', headers: { origin: server.url } }))).toBe('200')
  const token = await server.runToken(await server.startRun((await server.createAgent()).id))
  expect(outcomeOf(await auth('', { token }))).toBe('403 http_exception')
  expect(outcomeOf(await auth(`/${tokenId}`, { method: 'DELETE', token }))).toBe('403 http_exception')
  expect(outcomeOf(await auth('', { token: null }))).toBe('401 auth_missing')
})
