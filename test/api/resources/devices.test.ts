import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { closeCodes } from '../../../shared/device/limits.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

let server: TestServer
let other: Person
let agentToken: string
beforeAll(async () => {
  server = await TestServer.start()
  other = await server.addPerson('admin')
  agentToken = await server.runToken(await server.startRun((await server.createAgent()).id))
})
afterAll(() => server.stop())

const patch = (id: string, body: unknown, token?: string) =>
  server.call(`/devices/${id}`, { method: 'PATCH', body, ...(token === undefined ? {} : { token }) })
const remove = (id: string, token?: string) =>
  server.call(`/devices/${id}`, { method: 'DELETE', ...(token === undefined ? {} : { token }) })
const mine = async (person: Person) => (await server.ok('/devices', { token: person.token })).devices

test('agents call none of the routes', async () => {
  const id = crypto.randomUUID()
  for (const reply of [
    await server.call('/devices', { token: agentToken }),
    await patch(id, { displayName: 'x' }, agentToken),
    await remove(id, agentToken),
  ])
    expect(outcomeOf(reply)).toBe('403 http_exception')
})

describe('list', () => {
  test('shows the caller’s own devices from enrolment to retirement', async () => {
    const person = await server.addPerson('member')
    const identity = await enrol(server, { token: person.token })
    expect(await mine(person)).toEqual([
      {
        deviceId: identity.deviceId,
        publicId: expect.stringMatching(/^dvc_[0-9A-Za-z]{16}$/),
        displayName: 'laptop',
        hostname: 'laptop',
        platform: 'linux',
        version: '0.1.0',
        maxConcurrent: 3,
        isWorkspaceDefault: false,
        liveness: { kind: 'host', status: 'disconnected', expiresAt: null },
        online: false,
        linked: false,
        retired: false,
        lastHeartbeatAt: null,
        liveUntil: expect.any(String),
        providerReadiness: {},
        providerReadinessCapturedAt: null,
        claimState: null,
        limits: [],
        limitsInUse: [],
        runsBy: 'members',
        remoteControlRevokedAt: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      },
    ])
    const device = await FakeDevice.connect(server, { identity })
    const harness = { installed: true, version: '2.0', signedIn: null, message: null }
    device.send({
      type: 'readiness',
      providerReadiness: { harnesses: { claude: harness } },
      capturedAt: 1_760_000_000_000,
    })
    await expect.poll(async () => (await mine(person))[0].providerReadinessCapturedAt).not.toBeNull()
    const [online] = await mine(person)
    expect(online).toMatchObject({
      liveness: { kind: 'host', status: 'connected' },
      online: true,
      claimState: { accepting: true, reason: null, activeRuns: 0 },
      providerReadiness: { harnesses: { claude: harness } },
    })
    expect(online.liveness.expiresAt).toBe(online.liveUntil)
    expect(Date.parse(online.liveUntil) - Date.parse(online.lastHeartbeatAt)).toBe(90_000)
    await device.disconnect()
    server.world.advance(90_000 + 1_000)
    expect((await mine(person))[0]).toMatchObject({ liveness: { status: 'disconnected' }, online: false })
    server.world.advance(7 * 86_400_000)
    expect((await mine(person))[0]).toMatchObject({ liveness: { status: 'retired' }, retired: true })
    server.world.advance(-7 * 86_400_000 - 91_000)
    expect(await mine(other)).toEqual([])
  })

  test('a host name that a person set outlives what the device calls itself, also where it is enrolled anew', async () => {
    const person = await server.addPerson('member')
    const own = await enrol(server, { token: person.token, body: { hostname: 'box' } })
    const nameOf = async () => (await mine(person))[0].hostname
    await (await FakeDevice.connect(server, { identity: own, hello: { hostname: 'box.lan' } })).disconnect()
    expect(await nameOf()).toBe('box.lan')
    await patch(own.deviceId, { hostname: 'tower' }, person.token)
    await (await FakeDevice.connect(server, { identity: own, hello: { hostname: 'box.lan' } })).disconnect()
    expect(await nameOf()).toBe('tower')
    await enrol(server, { token: person.token, body: { hostname: 'box', publicId: own.publicId } })
    expect(await nameOf()).toBe('tower')
  })

  test('a phone is a controller and has no status', async () => {
    const person = await server.addPerson('member')
    await enrol(server, { token: person.token, body: { platform: 'iPadOS' } })
    expect((await mine(person))[0]).toMatchObject({ liveness: { kind: 'controller' }, online: false, retired: false })
  })
})

describe('change', () => {
  test('writes the keys it knows and refuses others', async () => {
    const { deviceId } = await enrol(server)
    const reply = await patch(deviceId, { displayName: ' Tower ', hostname: 'tower.lan', maxConcurrentRuns: 10 })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({ displayName: 'Tower', hostname: 'tower.lan', maxConcurrent: 10 })
    for (const body of [
      { maxConcurrent: 5 },
      { maxConcurrentRuns: 11 },
      { maxConcurrentRuns: 0 },
      { displayName: '' },
      { displayName: 'x'.repeat(101) },
      { hostname: 'x'.repeat(256) },
      { nonsense: true },
    ])
      expect([body, outcomeOf(await patch(deviceId, body))]).toEqual([body, '400 validation_error'])
  })

  test('one device is the default of the workspace; false changes nothing', async () => {
    const [a, b] = [await enrol(server), await enrol(server)]
    expect((await patch(a.deviceId, { isWorkspaceDefault: true })).body.isWorkspaceDefault).toBe(true)
    expect((await patch(b.deviceId, { isWorkspaceDefault: true })).body.isWorkspaceDefault).toBe(true)
    expect((await patch(b.deviceId, { isWorkspaceDefault: false })).body.isWorkspaceDefault).toBe(true)
    const byId = new Map((await mine(server.owner)).map((d: { deviceId: string }) => [d.deviceId, d]))
    expect(byId.get(a.deviceId)).toMatchObject({ isWorkspaceDefault: false })
    await remove(b.deviceId)
  })

  test('a phone takes no runs, and does not become the default of the workspace', async () => {
    const [host, phone] = [await enrol(server), await enrol(server, { body: { platform: 'iOS' } })]
    await patch(host.deviceId, { isWorkspaceDefault: true })
    const refused = await patch(phone.deviceId, { isWorkspaceDefault: true, displayName: 'Mine' })
    expect([outcomeOf(refused), refused.body.error.param]).toEqual(['400 validation_error', 'isWorkspaceDefault'])
    expect((await patch(phone.deviceId, { isWorkspaceDefault: false, displayName: 'Phone' })).status).toBe(200)
    expect((await patch(host.deviceId, {})).body.isWorkspaceDefault).toBe(true)
    await remove(host.deviceId)
  })

  test('the default device takes runs of everybody; a device under revoked control takes none', async () => {
    const host = await server.addPerson('admin', 'shared')
    const device = await FakeDevice.connect(server, { token: host.token })
    const { deviceId } = device.identity
    await patch(deviceId, { isWorkspaceDefault: true }, host.token)
    const guest = await server.addPerson('member', 'shared')
    const agent = await server.createAgent({}, guest.token)
    const wake = async () =>
      (await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: guest.token })).runPublicId as string
    await wake()
    await (await device.take()).end()
    const revoked = await patch(deviceId, { remoteControlRevoked: true }, host.token)
    expect(revoked.body.remoteControlRevokedAt).not.toBeNull()
    const waiting = await wake()
    expect((await server.ok(`/runs/${waiting}`, { token: guest.token })).gateReason).toBe('no_device')
    // Saying it again keeps the first time.
    const again = await patch(deviceId, { remoteControlRevoked: true }, host.token)
    expect(again.body.remoteControlRevokedAt).toBe(revoked.body.remoteControlRevokedAt)
    expect((await patch(deviceId, { remoteControlRevoked: false }, host.token)).body.remoteControlRevokedAt).toBeNull()
    const run = await device.take()
    expect(run.runId).toBe(waiting)
    await run.end()
    await device.disconnect()
    await remove(deviceId, host.token)
  })

  test('the device is told its settings', async () => {
    const device = await FakeDevice.connect(server)
    await patch(device.identity.deviceId, { displayName: 'Renamed', maxConcurrentRuns: 7, remoteControlRevoked: true })
    expect(await device.next('config.changed')).toEqual({
      type: 'config.changed',
      displayName: 'Renamed',
      capacity: 7,
      remoteControlRevoked: true,
      folders: [],
      limits: [],
    })
    await device.disconnect()
    await remove(device.identity.deviceId)
  })

  test('is its owner’s; the answers tell apart what concerns control', async () => {
    const { deviceId, publicId } = await enrol(server)
    expect(outcomeOf(await patch(deviceId, { isWorkspaceDefault: true }, other.token))).toBe(
      '403 remote_access_forbidden',
    )
    expect(outcomeOf(await patch(deviceId, { remoteControlRevoked: true }, other.token))).toBe(
      '403 remote_access_forbidden',
    )
    const plain = await patch(deviceId, { displayName: 'Mine' }, other.token)
    expect([plain.status, plain.body]).toEqual([403, { error: 'Device not owned by the caller' }])
    const foreign = await server.addPerson('owner', 'elsewhere')
    for (const [id, token] of [
      [crypto.randomUUID(), undefined],
      [deviceId, foreign.token],
    ] as const) {
      expect(outcomeOf(await patch(id, { remoteControlRevoked: true }, token))).toBe('404 device_not_found')
      expect(outcomeOf(await patch(id, { isWorkspaceDefault: true }, token))).toBe('404 resource_not_found')
      const unknown = await patch(id, { displayName: 'x' }, token)
      expect([unknown.status, unknown.body]).toEqual([404, { error: 'Device not found' }])
      const gone = await remove(id, token)
      expect([gone.status, gone.body]).toEqual([404, { error: 'Device not found' }])
    }
    expect(outcomeOf(await patch(publicId, { displayName: 'x' }))).toBe('400 invalid_id_format')
    expect(outcomeOf(await remove(publicId))).toBe('400 invalid_id_format')
    const refused = await remove(deviceId, other.token)
    expect([refused.status, refused.body]).toEqual([403, { error: 'Device not owned by the caller' }])
  })
})

describe('remove', () => {
  test('ends the link, the token and the runs of the device; what it was offered goes elsewhere', async () => {
    const person = await server.addPerson('admin')
    const device = await FakeDevice.connect(server, { token: person.token })
    const { deviceId, token } = device.identity
    const agent = await server.createAgent({}, person.token)
    const running = await server.startRun(agent.id)
    await device.take()
    const offered = await server.startRun(agent.id)
    await device.next('run.offer')
    await patch(deviceId, { isWorkspaceDefault: true }, person.token)
    const reply = await remove(deviceId, person.token)
    expect([reply.status, reply.body]).toEqual([204, null])
    expect(await device.closed).toBe(closeCodes.revoked.code)
    expect(await server.ok(`/runs/${running}`)).toMatchObject({ status: 'failed', exitReason: 'runner_lost' })
    expect(await server.ok(`/runs/${offered}`)).toMatchObject({ status: 'queued', gateReason: 'no_device' })
    expect(await mine(person)).toEqual([])
    const late = await server.call('/device/config', { base: '/api', token })
    expect(outcomeOf(late)).toBe('401 auth_invalid')
    const back = await FakeDevice.open(server, device.identity)
    expect(await back.closed).toBe(closeCodes.revoked.code)
    expect((await remove(deviceId, person.token)).status).toBe(404)
    await server.ok(`/runs/${offered}/cancel`, { body: {}, token: person.token })
  })
})

test('a device whose link closed is shown as such at once, keeps its lease, and is offered nothing', async () => {
  const person = await server.addPerson('member')
  const device = await FakeDevice.connect(server, { token: person.token })
  const { identity } = device
  const shown = async () => {
    const [{ online, linked, liveness }] = await mine(person)
    return { online, linked, status: liveness.status }
  }
  expect(await shown()).toEqual({ online: true, linked: true, status: 'connected' })
  await device.disconnect()
  await expect.poll(shown).toEqual({ online: true, linked: false, status: 'connected' })
  const agent = await server.createAgent({}, person.token)
  const runId = await server.startRun(agent.id, {}, person.token)
  await server.plane.dispatcher.idle()
  const run = await server.ok(`/runs/${runId}`, { token: person.token })
  expect(run).toMatchObject({ status: 'queued' })
  const again = await FakeDevice.connect(server, { identity })
  expect((await again.next('run.offer')).runId).toBe(runId)
  expect(await shown()).toMatchObject({ linked: true })
  await again.disconnect()
})

describe('what a device says of itself', () => {
  const readiness = (harnesses: Record<string, object>, capturedAt = 1) => ({
    type: 'readiness' as const,
    providerReadiness: { harnesses: harnesses as never },
    capturedAt,
  })
  const harness = { installed: true, version: null, signedIn: true, message: null }

  test('a time that no timestamp holds ends its link, and the list goes on being shown', async () => {
    const person = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: person.token })
    device.send(readiness({ claude: harness }, 8_700_000_000_000_000))
    expect(await device.closed).toBe(closeCodes.malformed_frame.code)
    expect(await mine(person)).toMatchObject([{ providerReadiness: {}, providerReadinessCapturedAt: null }])
  })

  test('is stored up to a bound, since each placement of a run reads it', async () => {
    const person = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: person.token })
    const many = Array.from({ length: 400 }, (_, n) => [`h${n}`, { ...harness, message: 'x'.repeat(1_000) }])
    const long = { claude: { ...harness, version: 'v'.repeat(200_000), message: 'm'.repeat(200_000) } }
    device.send(readiness({ ...long, ...Object.fromEntries(many) }))
    await device.beat()
    const [{ providerReadiness }] = await mine(person)
    expect(providerReadiness.harnesses.claude).toMatchObject({ installed: true, signedIn: true })
    expect(JSON.stringify(providerReadiness).length).toBeLessThan(200_000)
    device.send(readiness({ claude: { ...harness, message: 'm'.repeat(2_000_000) } }))
    expect(await device.closed).toBe(closeCodes.frame_too_large.code)
  })
})
