import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { closeCodes } from '../../../shared/device/limits.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type CallOptions } from '../../kit/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const internal = (path: string, options: CallOptions) => server.call(`/device/${path}`, { base: '/api', ...options })
const machine = { hostname: 'box', platform: 'linux', version: '1.0.0' }

describe('enrol', () => {
  test('makes a device with a token that connects it', async () => {
    const reply = await internal('enrol', { body: { ...machine, displayName: 'My box' } })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      publicId: expect.stringMatching(/^dvc_[0-9A-Za-z]{16}$/),
      deviceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      token: expect.stringMatching(/^svc_dev_[0-9A-Za-z]{43}$/),
      displayName: 'My box',
      server: server.url,
    })
    const device = await FakeDevice.connect(server, { identity: reply.body })
    await device.disconnect()
    // The token is kept as a hash only.
    const rows = await server.database.root('devices').where({ public_id: reply.body.publicId })
    expect(JSON.stringify(rows)).not.toContain(reply.body.token)
  })

  test('an earlier device keeps its dvc_ id, name and settings, and its old connection ends', async () => {
    const before = await FakeDevice.connect(server, { identity: await enrol(server) })
    const { publicId, deviceId, token } = before.identity
    await server.ok(`/devices/${deviceId}`, {
      method: 'PATCH',
      body: { displayName: 'Kept', maxConcurrentRuns: 8, remoteControlRevoked: true, isWorkspaceDefault: true },
    })
    const again = await enrol(server, { body: { publicId, hostname: 'renamed' } })
    expect(again).toMatchObject({ publicId, displayName: 'Kept' })
    expect(again.deviceId).not.toBe(deviceId)
    expect(again.token).not.toBe(token)
    expect(await before.closed).toBe(closeCodes.revoked.code)
    expect(await (await FakeDevice.open(server, before.identity)).closed).toBe(closeCodes.revoked.code)
    const device = await FakeDevice.connect(server, { identity: again })
    const listed = (await server.ok('/devices')).devices.filter((d: { publicId: string }) => d.publicId === publicId)
    expect(listed).toHaveLength(1)
    expect(listed[0]).toMatchObject({
      deviceId: again.deviceId,
      maxConcurrent: 8,
      isWorkspaceDefault: true,
      online: true,
      remoteControlRevokedAt: expect.any(String),
    })
    await device.disconnect()
    // Removed and connected anew it is the same device again.
    await server.call(`/devices/${again.deviceId}`, { method: 'DELETE' })
    expect((await enrol(server, { body: { publicId } })).publicId).toBe(publicId)
  })

  test('somebody else’s device looks like an unknown one', async () => {
    const { publicId } = await enrol(server)
    const other = await server.addPerson('admin')
    const foreign = await server.addPerson('owner', 'elsewhere')
    for (const [id, token] of [
      [publicId, other.token],
      [publicId, foreign.token],
      ['dvc_0000000000000000', server.owner.token],
    ]) {
      const reply = await internal('enrol', { body: { ...machine, publicId: id }, token: token! })
      expect(outcomeOf(reply)).toBe('404 resource_not_found')
    }
  })

  test('takes a login token and nothing else', async () => {
    const agent = await server.createAgent()
    const runToken = await server.runToken(await server.startRun(agent.id))
    expect(outcomeOf(await internal('enrol', { body: machine, token: runToken }))).toBe('403 http_exception')
    expect(outcomeOf(await internal('enrol', { body: machine, token: null }))).toBe('401 auth_missing')
    const { token } = await enrol(server)
    expect(outcomeOf(await internal('enrol', { body: machine, token }))).toBe('401 auth_invalid')
    const session = 'svc_dsh_session'
    await server.database.root('dashboard_sessions').insert({
      id: crypto.randomUUID(),
      user_id: server.owner.uuid,
      token_hash: createHash('sha256').update(session).digest('hex'),
      created_at: server.world.now(),
      expires_at: server.world.now() + 60_000,
    })
    const byCookie = await internal('enrol', {
      body: machine,
      token: null,
      headers: { cookie: `svc_session=${session}` },
    })
    expect(outcomeOf(byCookie)).toBe('403 http_exception')
    for (const body of [{}, { ...machine, publicId: 'mine' }, { ...machine, hostname: '' }])
      expect(outcomeOf(await internal('enrol', { body }))).toBe('400 validation_error')
  })
})

describe('the device’s own routes', () => {
  test('read its settings', async () => {
    const { token, publicId, deviceId } = await enrol(server, { body: { displayName: 'Own' } })
    expect((await internal('config', { token })).body).toEqual({
      publicId,
      deviceId,
      workspaceId: server.owner.workspaceId,
      displayName: 'Own',
      maxConcurrent: 3,
      isWorkspaceDefault: false,
      remoteControlRevoked: false,
      heartbeatMs: 25_000,
      leaseMs: 90_000,
      folders: [],
    })
  })

  test('name its folders, and no other’s', async () => {
    const device = await enrol(server)
    const other = await enrol(server)
    const folders = []
    for (const [index, { publicId }] of [device, other, device, device].entries()) {
      const body = { displayName: `Folder ${index}`, rootPath: `/repo-${index}`, deviceId: publicId }
      folders.push(await server.ok('/folders', { body }))
      server.world.advance(1_000)
    }
    await server.ok(`/folders/${folders[3].shortId}`, { method: 'DELETE' })
    const named = (await internal('config', { token: device.token })).body.folders
    expect(named).toEqual([
      { shortId: folders[0].shortId, displayName: 'Folder 0', rootPath: '/repo-0' },
      { shortId: folders[2].shortId, displayName: 'Folder 2', rootPath: '/repo-2' },
    ])
  })

  test('take a device token and nothing else', async () => {
    for (const [path, method] of [
      ['config', 'GET'],
      ['disconnect', 'POST'],
    ] as const) {
      expect(outcomeOf(await internal(path, { method, token: null }))).toBe('401 auth_missing')
      for (const token of [server.owner.token, 'svc_dev_unknown'])
        expect(outcomeOf(await internal(path, { method, token }))).toBe('401 auth_invalid')
    }
  })

  test('end with its retirement', async () => {
    const { token } = await enrol(server)
    server.world.advance(7 * 86_400_000 + 1)
    expect(outcomeOf(await internal('config', { token }))).toBe('401 auth_invalid')
    server.world.advance(-7 * 86_400_000 - 1)
  })

  test('disconnect removes it, but not while it works', async () => {
    const person = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: person.token })
    const { token } = device.identity
    const runId = await server.startRun((await server.createAgent({}, person.token)).id)
    const run = await device.take()
    const refused = await internal('disconnect', { method: 'POST', token })
    expect(outcomeOf(refused)).toBe('409 http_exception')
    expect(refused.body.error.details).toEqual({ runIds: [runId] })
    await run.end()
    const reply = await internal('disconnect', { method: 'POST', token })
    expect([reply.status, reply.body]).toEqual([204, null])
    expect(await device.closed).toBe(closeCodes.revoked.code)
    expect(outcomeOf(await internal('disconnect', { method: 'POST', token }))).toBe('401 auth_invalid')
    expect((await server.ok('/devices', { token: person.token })).devices).toEqual([])
  })
})
