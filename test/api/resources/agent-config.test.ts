import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPlatformChange } from '../../../control-plane/resources/platform-changes/store.ts'
import { enrol } from '../../kit/fake-device.ts'
import { halfRequest } from '../../kit/half-request.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { endRun } from '../../kit/end-run.ts'

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const put = (id: string, body: unknown, token?: string) =>
  server.call(`/agents/${id}/config`, { method: 'PUT', body, ...(token === undefined ? {} : { token }) })
const putMd = (id: string, body: unknown, token?: string) =>
  server.call(`/agents/${id}/identity/agent-md`, { method: 'PUT', body, ...(token === undefined ? {} : { token }) })
const revisions = (agentId: string) => server.database.root('agent_revisions').where({ agent_id: agentId })

describe('settings', () => {
  test('are read whole', async () => {
    const agent = await server.createAgent({
      name: 'Settled',
      model: 'claude-x',
      maxTurns: 7,
      identityMd: 'Do well.',
      harness: null,
      command: null,
    })
    const settings = await server.ok('/agents/@settled/config')
    expect(settings).toEqual({
      config: {
        runtime: {
          model: 'claude-x',
          backupModel: null,
          reasoningEffort: null,
          sandboxSize: null,
          harness: null,
          environment: 'device',
          fallbackHarness: null,
          maxTurns: 7,
          protocol: null,
          skillFolders: null,
          monthlyBudgetCents: null,
          command: null,
          triggers: { wakeOnAssignment: true, wakeOnHook: true },
        },
        permissions: { tools: { allow: [], ask: [], deny: [], defaultMode: null }, capabilities: [] },
      },
      agentMd: 'Do well.',
      agentMdHash: sha256('Do well.'),
      slug: 'settled',
    })
    expect(agent.harness).toBe('claude')
    expect(outcomeOf(await server.call('/agents/@nobody/config'))).toBe('404 resource_not_found')
  })

  test('keys that are sent are written, null inherits, the rest stays; each write keeps a revision', async () => {
    const agent = await server.createAgent({ model: 'a', maxTurns: 5 })
    const first = await put(agent.id, {
      config: {
        runtime: { model: null, reasoningEffort: 'high', triggers: { wakeOnHook: false } },
        permissions: { tools: { deny: ['Bash', { tool: 'Write', pattern: '/etc/**' }], defaultMode: 'ask' } },
      },
      agentMd: 'New text',
    })
    expect(first.status).toBe(200)
    expect(first.body.config).toMatchObject({
      runtime: {
        model: null,
        maxTurns: 5,
        reasoningEffort: 'high',
        triggers: { wakeOnAssignment: true, wakeOnHook: false },
      },
      permissions: { tools: { allow: [], deny: ['Bash', { tool: 'Write', pattern: '/etc/**' }], defaultMode: 'ask' } },
    })
    expect(first.body.revision).toMatchObject({
      agentId: agent.id,
      source: 'patch',
      beforeConfig: { runtime: { model: 'a' }, agentMd: '' },
      afterConfig: { runtime: { model: null }, agentMd: 'New text' },
    })
    expect(first.body.revision.changedKeys.toSorted()).toEqual([
      'agentMd',
      'permissions.tools.defaultMode',
      'permissions.tools.deny',
      'runtime.model',
      'runtime.reasoningEffort',
      'runtime.triggers.wakeOnHook',
    ])
    expect(first.body.revision.changeDescription).not.toBe('')
    const again = await put(agent.id, { config: { runtime: { maxTurns: 5 } } })
    expect(again.body.revision).toBeNull()
    expect(await revisions(agent.id)).toHaveLength(1)
    expect(outcomeOf(await put(agent.id, { config: { runtime: { maxTurns: 0 } } }))).toBe('400 validation_error')
    expect(outcomeOf(await put(agent.id, { config: { permissions: { capabilities: ['fly'] } } }))).toBe(
      '400 validation_error',
    )
    expect(outcomeOf(await put('@nobody', { config: {} }))).toBe('404 resource_not_found')
  })

  test('permissions are changed by admins; a member may send them back unchanged', async () => {
    const agent = await server.createAgent({}, member.token)
    const refused = await put(agent.id, { config: { permissions: { tools: { allow: ['Bash'] } } } }, member.token)
    expect(outcomeOf(refused)).toBe('403 http_exception')
    const { config } = await server.ok(`/agents/${agent.id}/config`, { token: member.token })
    config.runtime.model = 'm'
    expect((await put(agent.id, { config }, member.token)).status).toBe(200)
    const allowed = await put(agent.id, { config: { permissions: { capabilities: ['manage_runs', 'manage_runs'] } } })
    expect(allowed.body.config.permissions.capabilities).toEqual(['manage_runs'])
  })

  test('an agent with a default folder does not move to the cloud', async () => {
    const device = await enrol(server)
    const folder = await server.ok('/folders', {
      body: { displayName: 'code', rootPath: '/code', deviceId: device.publicId },
    })
    const agent = await server.createAgent({ defaultFolderId: folder.shortId })
    const move = () => put(agent.id, { config: { runtime: { environment: 'cloud' } } })
    expect(outcomeOf(await move())).toBe('422 folder_requires_device_environment')
    await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { defaultFolderId: null } })
    expect((await move()).status).toBe(200)
  })
})

describe('an agent', () => {
  test('reads and changes its own model, effort, turns, harness and AGENT.md by itself', async () => {
    const { agent, token } = await server.agentCaller({ identityMd: 'one' })
    expect((await server.ok('/agents/me/config', { token })).agentMd).toBe('one')
    const reply = await put(
      'me',
      {
        config: {
          runtime: { model: 'm', backupModel: 'b', reasoningEffort: 'low', maxTurns: 3, sandboxSize: 'large' },
        },
        agentMd: 'two',
        agentMdHash: sha256('one'),
      },
      token,
    )
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({ agentMd: 'two', config: { runtime: { model: 'm', maxTurns: 3 } } })
    const [revision] = (await revisions(agent.id)) as { changed_by: string }[]
    expect(revision?.changed_by).toBe(agent.id)
  })

  test('any other change of itself waits for approval, as a whole', async () => {
    const { agent, token } = await server.agentCaller()
    for (const config of [
      { permissions: { tools: { allow: ['*'] } } },
      { runtime: { model: 'z', environment: 'cloud' } },
      { runtime: { command: 'rm -rf /' } },
      { runtime: { triggers: { wakeOnHook: false } } },
    ]) {
      const reply = await put(agent.id, { config }, token)
      expect(reply.status).toBe(202)
      const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
      expect(stored).toMatchObject({ routeId: 'agents.config.put', params: { agentId: agent.id }, body: { config } })
    }
    expect((await server.ok(`/agents/${agent.id}`)).model).toBeNull()
    expect(await revisions(agent.id)).toHaveLength(0)
  })

  test('whose run has just ended asks for nothing', async () => {
    const { token, runId } = await server.agentCaller()
    const between = async () => {
      const ending = { exitReason: 'interrupted', errorMessage: null } as const
      await endRun(server.database.root, { runId, fence: null, ...ending, at: server.world.now() })
    }
    const body = { config: { runtime: { environment: 'cloud' } } }
    const reply = await halfRequest(server, '/agents/me/config', { method: 'PUT', token, body, between })
    expect(outcomeOf(reply)).toBe('403 platform_change_requires_run')
  })

  test('leaves the settings of others alone', async () => {
    const { token } = await server.agentCaller()
    const other = await server.createAgent()
    expect(outcomeOf(await server.call(`/agents/${other.id}/config`, { token }))).toBe('403 agent_self_only')
    expect(outcomeOf(await put(other.id, { config: { runtime: { model: 'x' } } }, token))).toBe('403 agent_self_only')
    expect(outcomeOf(await putMd(other.id, { agentMd: 'x', agentMdHash: sha256('') }, token))).toBe(
      '403 agent_self_only',
    )
    // What is not settings is open to all who see it.
    expect((await server.ok(`/agents/${other.id}/identity`, { token })).agentMd).toBe('')
  })

  test('saves AGENT.md only over the text it has read', async () => {
    const { agent, token } = await server.agentCaller({ identityMd: 'current' })
    for (const agentMdHash of [undefined, sha256('older')]) {
      for (const reply of [
        await putMd('me', { agentMd: 'mine', agentMdHash }, token),
        await put('me', { agentMd: 'mine', agentMdHash }, token),
      ]) {
        expect(outcomeOf(reply)).toBe('409 agent_md_stale')
        expect(reply.body.error.details).toEqual({ agentMd: 'current', agentMdHash: sha256('current') })
      }
    }
    const saved = await putMd('me', { agentMd: 'mine', agentMdHash: sha256('current') }, token)
    expect(saved.body).toEqual({ agentMd: 'mine', agentMdHash: sha256('mine'), rules: [ofSvc] })
    expect(await revisions(agent.id)).toHaveLength(1)
  })
})

test('the rules of an identity are the texts that its runs read before AGENT.md', async () => {
  const agent = await server.createAgent({ identityMd: 'Mine.' })
  const { id: workspaceId } = await server.ok('/workspaces')
  const set = (contextMd: string | null) =>
    server.ok(`/workspaces/${workspaceId}`, { method: 'PATCH', body: { contextMd } })
  await set('We build boats.')
  const { agentMd, rules } = await server.ok(`/agents/${agent.id}/identity`)
  expect([agentMd, rules]).toEqual(['Mine.', [ofSvc, 'We build boats.']])
  const runId = await server.startRun(agent.id)
  expect((await server.ok(`/runs/${runId}/manifest`)).rules).toEqual(rules)
  await set(null)
  expect((await server.ok(`/agents/${agent.id}/identity`)).rules).toEqual([ofSvc])
})

const ofSvc = expect.stringContaining('You run unattended') as string

test('a person needs no hash, but is held to one that it sends', async () => {
  const agent = await server.createAgent({ identityMd: 'a' })
  expect((await putMd(agent.id, { agentMd: 'b' })).status).toBe(200)
  expect(outcomeOf(await putMd(agent.id, { agentMd: 'c', agentMdHash: sha256('a') }))).toBe('409 agent_md_stale')
  expect((await putMd(agent.id, { agentMd: 'c', agentMdHash: sha256('b') })).status).toBe(200)
  expect(await server.ok(`/agents/${agent.id}/identity`)).toEqual({
    agentMd: 'c',
    agentMdHash: sha256('c'),
    rules: [ofSvc],
  })
  expect(outcomeOf(await putMd('@nobody', { agentMd: 'c' }))).toBe('404 resource_not_found')
  expect(outcomeOf(await putMd(agent.id, {}))).toBe('400 validation_error')
})
