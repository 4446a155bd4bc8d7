import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { specOf } from '../../kit/rows.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'

// Tests who decides which program runs on whose machine (docs/trust.md). `member` owns the agents, `other` is a colleague.

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople({
    settings: { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') },
  }))
})
afterAll(() => server.stop())

const key = () => ({ 'Idempotency-Key': crypto.randomUUID() })
const configure = (id: string, runtime: Record<string, unknown>, { token }: { token: string }) =>
  server.call(`/agents/${id}/config`, { method: 'PUT', body: { config: { runtime } }, token })
const configOf = async (id: string) => (await server.ok(`/agents/${id}/config`)).config
const refused = '403 http_exception'
const plain = { harness: null, command: null }

describe('which program an agent runs', () => {
  test('is decided by its owner and admins; the rest of its settings by every person', async () => {
    const agent = await server.createAgent(plain, member.token)
    const before = await configOf(agent.id)
    for (const runtime of [
      { command: 'id' },
      { harness: 'command' },
      { harness: 'command', command: ['sh', '-c', 'id'] },
      { command: 'id', model: 'm' },
    ])
      expect(outcomeOf(await configure(agent.id, runtime, other))).toBe(refused)
    expect(await configOf(agent.id)).toEqual(before)
    for (const runtime of [{ harness: 'codex', model: 'm', reasoningEffort: 'high' }, { harness: null }])
      expect(outcomeOf(await configure(agent.id, runtime, other))).toBe('200')
    expect(outcomeOf(await configure(agent.id, { harness: 'command', command: 'id' }, member))).toBe('200')
    expect(outcomeOf(await configure(agent.id, { harness: 'claude' }, other))).toBe(refused)
    expect(outcomeOf(await configure(agent.id, { command: 'whoami' }, admin))).toBe('200')
  })

  test('not by a rollback or a revert either', async () => {
    const agent = await server.createAgent(plain, member.token)
    await configure(agent.id, { harness: 'command', command: 'old' }, member)
    const [old] = (await server.ok(`/agents/${agent.id}/revisions`)).data
    await configure(agent.id, { harness: null, command: null }, member)
    const rollback = (token: string) =>
      server.call(`/agents/${agent.id}/revisions/${old.id}/rollback`, { method: 'POST', token })
    const [entry] = (await server.ok(`/agents/${agent.id}/history`)).data
    const revert = (token: string) =>
      server.call(`/agents/${agent.id}/history/${entry.id}/revert`, { method: 'POST', token })
    expect(outcomeOf(await rollback(other.token))).toBe(refused)
    expect(outcomeOf(await revert(other.token))).toBe(refused)
    expect((await configOf(agent.id)).runtime).toMatchObject({ harness: null, command: null })
    expect(outcomeOf(await revert(member.token))).toBe('200')
  })

  test('not by an approval that a colleague has the agent ask for', async () => {
    const { agent, token } = await server.agentCaller(plain, { token: member.token })
    const asked = await server.call('/agents/me/config', {
      method: 'PUT',
      token,
      body: { config: { runtime: { harness: 'command', command: 'id' } } },
    })
    expect(asked.status).toBe(202)
    const id = asked.body.approvalId
    const assigned = {
      body: { assignedTo: { type: 'user', id: other.userId }, reason: 'away' },
      token: admin.token,
      headers: key(),
    }
    expect(outcomeOf(await server.call(`/approvals/${id}/assign`, assigned))).toBe('200')
    const approve = { body: {}, token: other.token, headers: key() }
    const approved = await server.call(`/approvals/${id}/approve`, approve)
    expect(approved.body.gatedThing.platformChange.result).toMatchObject({ status: 403 })
    expect((await configOf(agent.id)).runtime).toMatchObject({ harness: null, command: null })
  })

  test('an agent does not become or cease to be a command by itself', async () => {
    const { agent, token } = await server.agentCaller({ harness: 'codex', command: 'id' }, { token: member.token })
    const put = (harness: string) =>
      server.call('/agents/me/config', { method: 'PUT', token, body: { config: { runtime: { harness } } } })
    expect((await put('claude')).status).toBe(200)
    expect((await put('command')).status).toBe(202)
    expect((await configOf(agent.id)).runtime.harness).toBe('claude')
  })

  test('not by a task or a conversation: their harness makes no command of an agent, and no agent of a command', async () => {
    const startOn = async (agent: { id: string }, fields: Record<string, unknown>) => {
      const task = await server.ok('/tasks', {
        body: { title: crypto.randomUUID(), force: true, ...fields },
        token: other.token,
        headers: key(),
      })
      return specOf(server, await server.startRun(agent.id, { taskId: task.key ?? task.id }, other.token))
    }
    const program = await server.createAgent({ harness: 'command', command: 'make' }, member.token)
    expect(await startOn(program, { harness: 'claude' })).toMatchObject({ harness: 'command', command: 'make' })
    expect(await startOn(program, { modelId: 'claude-opus-4-5' })).toMatchObject({ harness: 'command' })
    const thinker = await server.createAgent({ harness: 'codex', command: 'make' }, member.token)
    expect(await startOn(thinker, { harness: 'command' })).toMatchObject({ harness: 'codex' })
    expect(await startOn(thinker, { harness: 'claude' })).toMatchObject({ harness: 'claude' })
  })
})

describe('secrets', () => {
  const create = async (body: Record<string, unknown>, { token }: { token: string }) =>
    server.call('/secrets', { body: { name: crypto.randomUUID(), value: 'v', ...body }, token })
  const grant = (id: string, agentId: string, { token }: { token: string }) =>
    server.call(`/secrets/${id}/grants`, { body: { agentId }, token })

  test('are granted to an agent by its owner and admins', async () => {
    const agent = await server.createAgent({}, member.token)
    const theirs = (await create({ envVarName: 'DEPLOY_KEY' }, other)).body.id
    expect(outcomeOf(await create({ agentId: agent.id }, other))).toBe(refused)
    expect(outcomeOf(await grant(theirs, agent.id, other))).toBe(refused)
    const listed = (await server.ok('/secrets')).data.find((secret: { id: string }) => secret.id === theirs)
    expect(listed.grantedTo).toEqual([])
    expect(outcomeOf(await create({ agentId: agent.id }, member))).toBe('201')
    expect(outcomeOf(await grant(theirs, agent.id, admin))).toBe('200')
  })

  test('have no name by which programs are steered; where traffic goes is for admins to say', async () => {
    for (const envVarName of ['GIT_EXTERNAL_DIFF', 'NODE_EXTRA_CA_CERTS', 'ZDOTDIR', 'CLAUDE_CONFIG_DIR', 'PERL5DB'])
      for (const person of [member, admin])
        expect([envVarName, outcomeOf(await create({ envVarName }, person))]).toEqual([
          envVarName,
          '400 validation_error',
        ])
    for (const envVarName of ['ANTHROPIC_BASE_URL', 'HTTPS_PROXY', 'https_proxy']) {
      expect(outcomeOf(await create({ envVarName }, member))).toBe(refused)
      expect(outcomeOf(await create({ envVarName }, admin))).toBe('201')
    }
    expect(outcomeOf(await create({ name: `https proxy`, envVarName: undefined }, member))).toBe(refused)
  })

  test('of an older release do not reach programs under such a name', async () => {
    const person = await server.addPerson('member')
    const agent = await server.createAgent({}, person.token)
    const secret = (await create({ envVarName: 'FINE', agentId: agent.id }, person)).body
    await create({ envVarName: 'GOOD', agentId: agent.id }, person)
    await server.database.root('secrets').where({ id: secret.id }).update({ env_var_name: 'LD_PRELOAD' })
    const device = await FakeDevice.connect(server, { token: person.token })
    await server.startRun(agent.id, {}, person.token)
    const { runId, fence } = await device.next('run.offer')
    device.send({ type: 'run.accepted', runId, fence })
    expect(Object.keys((await device.next('run.start')).secrets)).toEqual(['GOOD'])
    await device.disconnect()
  })

  test('an agent asks for none by which traffic is redirected', async () => {
    const { token } = await server.agentCaller({}, { token: member.token })
    const secretRequest = { provider: 'x', name: crypto.randomUUID(), envVarName: 'OPENAI_BASE_URL', reason: 'r' }
    const body = { prompt: 'Key?', answerMode: 'secret_input', secretRequest }
    expect(outcomeOf(await server.call('/questions', { body, token, headers: key() }))).toBe('400 validation_error')
  })
})

describe('an agent that changes hands', () => {
  const gateOf = async (runId: string) => (await server.ok(`/runs/${runId}`)).gateReason
  async function given() {
    const owner = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: owner.token })
    const agent = await server.createAgent({ command: 'id' }, other.token)
    const gift = { body: { newOwnerId: owner.userId }, token: other.token }
    expect((await server.call(`/agents/${agent.id}/transfer-owner`, gift)).status).toBe(200)
    return { owner, device, agent }
  }

  test('runs on no device of its new owner before they agree', async () => {
    const { owner, device, agent } = await given()
    const runId = await server.startRun(agent.id, {}, other.token)
    expect(await gateOf(runId)).toBe('governance_refused')
    const { audit } = await server.ok(`/agents/${agent.id}/audit`)
    expect(audit.map(({ code }: { code: string }) => code)).toContain('owner_not_agreed')
    expect(outcomeOf(await server.call(`/agents/${agent.id}/accept`, { method: 'POST', token: other.token }))).toBe(
      refused,
    )
    expect(outcomeOf(await server.call(`/agents/${agent.id}/accept`, { method: 'POST', token: admin.token }))).toBe(
      refused,
    )
    expect(await gateOf(runId)).toBe('governance_refused')
    await server.ok(`/agents/${agent.id}/accept`, { method: 'POST', token: owner.token })
    const work = await device.take()
    expect(work.runId).toBe(runId)
    await work.end()
    await server.ok(`/agents/${agent.id}/accept`, { method: 'POST', token: owner.token })
    await device.disconnect()
  })

  test('their first start or change is their word; giving it on is none', async () => {
    for (const act of ['start', 'change'] as const) {
      const { owner, device, agent } = await given()
      if (act === 'start') await server.startRun(agent.id, {}, owner.token)
      else {
        await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { role: 'r' }, token: owner.token })
        await server.startRun(agent.id, {}, other.token)
      }
      await (await device.take()).end()
      await device.disconnect()
    }
    const { owner, agent } = await given()
    const last = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: last.token })
    const gift = { body: { newOwnerId: last.userId }, token: owner.token }
    expect((await server.call(`/agents/${agent.id}/transfer-owner`, gift)).status).toBe(200)
    expect(await gateOf(await server.startRun(agent.id, {}, other.token))).toBe('governance_refused')
    await device.disconnect()
  })

  test('given by an admin it needs no word', async () => {
    const owner = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: owner.token })
    const agent = await server.createAgent({ command: 'id' }, other.token)
    await server.ok(`/agents/${agent.id}/transfer-owner`, { body: { newOwnerId: owner.userId }, token: admin.token })
    await server.startRun(agent.id, {}, other.token)
    await (await device.take()).end()
    await device.disconnect()
  })
})

describe('whose wakes a device takes', () => {
  async function guarded(runsBy: 'owner' | 'admins' | 'members') {
    const owner = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: owner.token })
    const patch = (token: string) =>
      server.call(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body: { runsBy }, token })
    expect(outcomeOf(await patch(other.token))).toBe('403 remote_access_forbidden')
    expect((await patch(owner.token)).body.runsBy).toBe(runsBy)
    const agent = await server.createAgent({}, owner.token)
    const gate = async (wakes: Promise<string>) => (await server.ok(`/runs/${await wakes}`)).gateReason
    return { owner, device, agent, gate }
  }

  test.each(['owner', 'admins', 'members'] as const)('%s', async (runsBy) => {
    const { owner, device, agent, gate } = await guarded(runsBy)
    for (const person of [other, admin, owner]) {
      const isTaken = runsBy === 'members' || person === owner || (runsBy === 'admins' && person === admin)
      const wake = server.startRun(agent.id, {}, person.token)
      expect([person === other, await gate(wake)]).toEqual([person === other, isTaken ? null : 'governance_refused'])
      if (!isTaken) continue
      const work = await device.take()
      expect(work.runId).toBe(await wake)
      await work.end()
    }
    await device.disconnect()
  })

  test('is judged by the person at the root: what an agent starts is the doing of who woke it, on a device of theirs', async () => {
    const { owner, device, agent, gate } = await guarded('owner')
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { maxConcurrentRuns: 2 },
      token: owner.token,
    })
    const theirs = await FakeDevice.connect(server, { token: other.token })
    const helpers = {
      own: { agent: await server.createAgent({}, owner.token), device },
      // Whoever owns the device has the token of what runs there.
      foreign: { agent: await server.createAgent({}, other.token), device: theirs },
    }
    for (const [person, helper, expected] of [
      [other, 'foreign', 'governance_refused'],
      [owner, 'foreign', 'governance_refused'],
      [owner, 'own', null],
    ] as const) {
      await server.startRun(helpers[helper].agent.id, {}, person.token)
      const work = await helpers[helper].device.take()
      expect(await gate(server.startRun(agent.id, {}, work.token))).toBe(expected)
      if (expected === null) await (await device.take()).end()
      await work.end()
    }
    await theirs.disconnect()
    await device.disconnect()
  })

  test('is judged, for an automation, by who last changed what it starts', async () => {
    const { owner, device, agent, gate } = await guarded('owner')
    const made = await server.ok('/automations', {
      body: { name: 'Hook', prompt: 'Go.', agentId: agent.id, trigger: { type: 'webhook' } },
      token: owner.token,
      headers: key(),
    })
    const path = `/automations/${made.id}`
    let hook = new URL(made.webhookUrl).pathname
    const fire = async (): Promise<string> => {
      const reply = await server.call(hook, { base: '', token: null, body: { once: crypto.randomUUID() } })
      expect(reply.status).toBeLessThan(300)
      return reply.body.runId as string
    }
    expect(await gate(fire())).toBeNull()
    await (await device.take()).end()
    await server.ok(path, { body: { name: 'Renamed' }, token: other.token })
    expect(await gate(fire())).toBeNull()
    await (await device.take()).end()
    for (const change of ['prompt', 'rotate'] as const) {
      if (change === 'prompt') await server.ok(path, { body: { prompt: 'Run id.' }, token: other.token })
      else {
        await server.ok(path, { body: { prompt: 'Go.' }, token: owner.token })
        const rotated = await server.ok(`${path}/rotate`, { method: 'POST', token: other.token })
        hook = new URL(rotated.webhookUrl).pathname
      }
      expect([change, await gate(fire())]).toEqual([change, 'governance_refused'])
    }
    await device.disconnect()
  })

  test('a change of the choice lets what waits go on, and a choice survives a new connection', async () => {
    const { owner, device, agent, gate } = await guarded('owner')
    const wake = server.startRun(agent.id, {}, other.token)
    expect(await gate(wake)).toBe('governance_refused')
    const again = await enrol(server, { token: owner.token, body: { publicId: device.identity.publicId } })
    const { devices } = await server.ok('/devices', { token: owner.token })
    expect(devices).toMatchObject([{ deviceId: again.deviceId, runsBy: 'owner' }])
    const fresh = await FakeDevice.connect(server, { identity: again })
    await server.ok(`/devices/${again.deviceId}`, {
      method: 'PATCH',
      body: { runsBy: 'members' },
      token: owner.token,
    })
    await (await fresh.take()).end()
    await fresh.disconnect()
  })
})
