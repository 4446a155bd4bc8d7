import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { sceneOf } from './trust-scene.ts'

// Tests whose device is the default one of a workspace, and what goes there (docs/trust.md).

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

describe('the default device', () => {
  const makeDefault = (device: FakeDevice, by: Person) =>
    server.call(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { isWorkspaceDefault: true },
      token: by.token,
    })

  test('is made and replaced by admins alone', async () => {
    const { she, device, he } = await sceneOf(server)
    const theirs = await FakeDevice.connect(server, { token: she.token })
    expect(outcomeOf(await makeDefault(theirs, she))).toBe('403 http_exception')
    expect(outcomeOf(await makeDefault(theirs, he))).toBe('403 remote_access_forbidden')
    expect((await server.ok('/devices', { token: he.token })).devices).toMatchObject([{ isWorkspaceDefault: true }])
    // Whatever else the call changes is not changed either.
    const both = { isWorkspaceDefault: true, displayName: 'Changed' }
    const { deviceId } = theirs.identity
    await server.call(`/devices/${deviceId}`, { method: 'PATCH', body: both, token: she.token })
    const [kept] = (await server.ok('/devices', { token: she.token })).devices
    expect(kept).toMatchObject({ isWorkspaceDefault: false, displayName: theirs.identity.displayName })
    await theirs.disconnect()
    await device.disconnect()
  })

  test('is none any more once its owner is no admin, also where that was stored by an older release', async () => {
    const { she, device, he } = await sceneOf(server)
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { runsBy: 'members' },
      token: he.token,
    })
    const agent = await server.createAgent({}, she.token)
    await server.startRun(agent.id, {}, she.token)
    await (await device.take()).end()
    const { root } = server.database
    await root('members').where({ workspace_id: he.workspaceId, user_id: he.uuid }).update({ role: 'member' })
    const waiting = await server.startRun(agent.id, {}, she.token)
    expect((await server.ok(`/runs/${waiting}`, { token: she.token })).gateReason).toBe('no_device')
    await device.disconnect()
  })

  test('comes behind a device of the owner for a private agent, whose work no other member gets', async () => {
    const { she, device, he, ...scene } = await sceneOf(server)
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { runsBy: 'members' },
      token: he.token,
    })
    const theirs = await FakeDevice.connect(server, { token: she.token })
    const agent = await server.createAgent({ visibility: 'private' }, she.token)
    await server.startRun(agent.id, {}, she.token)
    await (await theirs.take()).end()
    await theirs.disconnect()
    // Its owner is an admin, so it may take the work.
    await server.startRun(agent.id, {}, she.token)
    await (await device.take()).end()
    // A folder on the device of a member who is neither.
    const third = await server.addPerson('member', scene.slug)
    const foreign = await FakeDevice.connect(server, { token: third.token })
    const folder = await server.ok('/folders', {
      body: { deviceId: foreign.identity.deviceId, displayName: 'f', rootPath: '/tmp' },
      token: third.token,
    })
    const open = await server.createAgent({}, third.token)
    const { root } = server.database
    for (const id of [open.id, agent.id])
      await root('agents').where({ id }).update({ default_folder_id: folder.shortId })
    await server.startRun(open.id, {}, she.token)
    await (await foreign.take()).end()
    const codesOf = async () =>
      (await server.ok(`/agents/${agent.id}/audit`, { token: she.token })).audit.map(
        (each: { message: string }) => each.message,
      )
    expect((await codesOf()).join()).toContain('it is private or given secrets')
    const gateOf = async (runId: string) => (await server.ok(`/runs/${runId}`, { token: she.token })).gateReason
    expect(await gateOf(await server.startRun(agent.id, {}, she.token))).toBe('governance_refused')
    // Secrets, too: his agent works there with none.
    await root('agents').where({ id: scene.his }).update({ default_folder_id: folder.shortId })
    await server.startRun(scene.his, {}, he.token)
    await (await foreign.take()).end()
    await root('secret_grants').insert({
      secret_id: await secretOf(he),
      agent_id: scene.his,
      workspace_id: he.workspaceId,
      granted_by: he.userId,
      created_at: server.world.now(),
    })
    const given = await server.startRun(scene.his, {}, he.token)
    expect((await server.ok(`/runs/${given}`, { token: he.token })).gateReason).toBe('governance_refused')
    await foreign.disconnect()
    await device.disconnect()
  })

  async function secretOf({ workspaceId, userId }: Person): Promise<string> {
    const id = server.world.id('sec_')
    await server.database.root('secrets').insert({
      id,
      workspace_id: workspaceId,
      name: id,
      env_var_name: 'A_TOKEN',
      sealed: Buffer.from('x'),
      created_by: userId,
      created_at: server.world.now(),
    })
    return id
  }
})
