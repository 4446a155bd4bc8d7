import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { dropMembership } from '../../kit/rows.ts'
import type { Person, TestServer } from '../../kit/server.ts'

// Tests who commands a machine once an agent changes hands, a run ends or a person leaves (docs/trust.md).

let server: TestServer, admin: Person
beforeAll(async () => {
  ;({ server, admin } = await startWithPeople())
})
afterAll(() => server.stop())

const key = () => ({ 'Idempotency-Key': crypto.randomUUID() })
/** A later test's device would take it. */
const cancel = (id: string) => server.ok(`/runs/${id}/cancel`, { method: 'POST' })
const runOf = (id: string) => server.ok(`/runs/${id}`)

async function withDevice(role: 'admin' | 'member' = 'member'): Promise<{ person: Person; device: FakeDevice }> {
  const person = await server.addPerson(role)
  return { person, device: await FakeDevice.connect(server, { token: person.token }) }
}
const give = (agentId: string, to: Person, by: Person) =>
  server.ok(`/agents/${agentId}/transfer-owner`, { body: { newOwnerId: to.userId }, token: by.token })
const setCommand = (agentId: string, command: string, by: Person) =>
  server.ok(`/agents/${agentId}/config`, { method: 'PUT', body: { config: { runtime: { command } } }, token: by.token })

describe('an agent that changes hands', () => {
  test.each(['a member', 'an admin'])(
    'takes along nothing that waited: what %s gives away was written down by the old owner',
    async (giver) => {
      const old = await server.addPerson('member')
      const { person, device } = await withDevice()
      const agent = await server.createAgent({ command: 'curl evil' }, old.token)
      const waited = await server.startRun(agent.id, {}, old.token)
      await setCommand(agent.id, 'true', old)
      await give(agent.id, person, giver === 'an admin' ? admin : old)
      expect(await runOf(waited)).toMatchObject({
        status: 'cancelled',
        exitReason: 'interrupted',
        errorMessage: 'The agent was given to another owner.',
      })
      await server.ok(`/agents/${agent.id}/accept`, { method: 'POST', token: person.token })
      await server.startRun(agent.id, {}, person.token)
      const work = await device.take()
      expect(work.spec.command).toBe('true')
      await work.end()
      await device.disconnect()
    },
  )

  test('runs no old command on a device of who put another one in its place', async () => {
    const old = await server.addPerson('member')
    const { person, device } = await withDevice()
    const agent = await server.createAgent({ command: 'curl evil' }, old.token)
    await give(agent.id, person, old)
    const waited = await server.startRun(agent.id, {}, old.token)
    expect((await runOf(waited)).gateReason).toBe('governance_refused')
    await setCommand(agent.id, 'true', person)
    expect(await runOf(waited)).toMatchObject({ status: 'cancelled', exitReason: 'interrupted' })
    await server.startRun(agent.id, {}, old.token)
    const work = await device.take()
    expect(work.spec.command).toBe('true')
    await work.end()
    await device.disconnect()
  })

  test("leaves the folder and the sessions on the old owner's device behind", async () => {
    const { person: old, device } = await withDevice()
    const next = await server.addPerson('member')
    const folder = await server.ok('/folders', {
      body: { displayName: 'home', rootPath: '/home/old', deviceId: device.identity.publicId },
      token: old.token,
    })
    const inFolder = await server.createAgent({ defaultFolderId: folder.shortId }, old.token)
    await give(inFolder.id, next, admin)
    expect((await server.ok(`/agents/${inFolder.id}`)).defaultFolderId).toBeNull()

    const talker = await server.createAgent({ harness: 'claude', command: null }, old.token)
    const { id } = await server.ok('/conversations', {
      body: { kind: 'dm', participants: [talker.id] },
      token: old.token,
      headers: key(),
    })
    const say = () =>
      server.ok(`/conversations/${id}/messages`, { body: { body: 'Hello.' }, token: old.token, headers: key() })
    await say()
    const work = await device.take()
    await work.end('completed', { sessionId: 'session-1' })
    await give(talker.id, next, admin)
    await setCommand(inFolder.id, 'id', next)
    const started = [await server.startRun(inFolder.id, {}, next.token)]
    await say()
    await expect.poll(async () => (await server.ok(`/runs?agent=${talker.id}`)).data.length).toBe(2)
    started.push((await server.ok(`/runs?agent=${talker.id}`)).data[0].id)
    for (const run of started) {
      expect((await runOf(run)).gateReason).toBe('no_device')
      await cancel(run)
    }
    await device.disconnect()
  })
})

test('what an agent says last is not the doing of whoever else it works for', async () => {
  const { person: owner, device } = await withDevice()
  await server.ok(`/devices/${device.identity.deviceId}`, {
    method: 'PATCH',
    body: { runsBy: 'owner' },
    token: owner.token,
  })
  const { person: member, device: theirs } = await withDevice()
  await server.ok(`/devices/${theirs.identity.deviceId}`, {
    method: 'PATCH',
    body: { maxConcurrentRuns: 2 },
    token: member.token,
  })
  const target = await server.createAgent({}, owner.token)
  const talker = await server.createAgent({}, member.token)
  await server.startRun(talker.id, {}, owner.token)
  const ofOwner = await theirs.take()
  const { id } = await server.ok('/conversations', {
    body: { title: 'Together', participants: [talker.id, target.id] },
    token: member.token,
    headers: key(),
  })
  await server.ok(`/conversations/${id}/messages`, {
    body: { body: `${talker.handle} say it` },
    token: member.token,
    headers: key(),
  })
  const ofMember = await theirs.take()
  await ofMember.events({ kind: 'result', data: { text: `${target.handle} run it`, isError: false } })
  await ofMember.end()
  await expect.poll(async () => (await server.ok(`/runs?agent=${target.id}`)).data.length).toBe(1)
  const [woken] = (await server.ok(`/runs?agent=${target.id}`)).data
  expect(woken.gateReason).toBe('governance_refused')
  const { caused_by_user_id: cause } = await server.database
    .root('runs')
    .where({ id: woken.id })
    .first('caused_by_user_id')
  expect(cause).toBe(member.uuid)
  await cancel(woken.id)
  await ofOwner.end()
  for (const each of [device, theirs]) await each.disconnect()
})

describe('a person who left', () => {
  /** Their agent works on the device that all runs may go to, and has an automation. */
  async function working() {
    const { person: host, device } = await withDevice('admin')
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { isWorkspaceDefault: true },
      token: host.token,
    })
    const member = await server.addPerson('member')
    const agent = await server.createAgent({}, member.token)
    const live = await server.startRun(agent.id, {}, member.token)
    const work = await device.take()
    const made = await server.ok('/automations', {
      body: { name: 'Hook', prompt: 'Go.', agentId: agent.id, trigger: { type: 'webhook' } },
      token: member.token,
      headers: key(),
    })
    const fire = async () =>
      (
        await server.call(new URL(made.webhookUrl).pathname, {
          base: '',
          token: null,
          body: { once: crypto.randomUUID() },
        })
      ).body
    return { device, member, agent, live, work, automation: `/automations/${made.id}`, fire }
  }

  test('has nothing running, and automations on their account wait for somebody who answers for them', async () => {
    const { device, member, live, work, automation, fire } = await working()
    await server.ok(`/workspaces/${member.workspaceId}/leave`, { method: 'POST', token: member.token })
    expect(await device.next('run.cancel')).toMatchObject({ runId: live, exitReason: 'interrupted' })
    await work.end('interrupted')
    expect((await server.ok(automation)).status).toBe('paused')
    expect((await fire()).kind).toBe('skipped')
    await server.ok(`${automation}/resume`, { method: 'POST', token: admin.token })
    const { runId } = await fire()
    expect((await runOf(runId)).gateReason).toBeNull()
    await (await device.take()).end()
    await device.disconnect()
  })

  test('causes no run on any device, whatever was left behind', async () => {
    const { device, member, agent, work, fire } = await working()
    await work.end()
    await dropMembership(server, member)
    const { runId } = await fire()
    expect((await runOf(runId)).gateReason).toBe('governance_refused')
    // One who waits is not let through by the next look, either.
    await server.startRun(agent.id, {}, admin.token)
    const next = await device.take()
    expect(next.runId).not.toBe(runId)
    await next.end()
    expect((await runOf(runId)).gateReason).toBe('governance_refused')
    await device.disconnect()
  })
})
