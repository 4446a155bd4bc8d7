import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPlatformChange } from '../../../control-plane/resources/platform-changes/store.ts'
import { enrol } from '../../kit/fake-device.ts'
import { halfRequest } from '../../kit/half-request.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { endRun } from '../../kit/end-run.ts'

let server: TestServer
let admin: Person
let member: Person
beforeAll(async () => {
  server = await TestServer.start()
  admin = await server.addPerson('admin')
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

/** Changes settings and returns the revision. */
async function put(agentId: string, body: Record<string, unknown>, token = admin.token) {
  // Entries of one moment have no order that a test could rely on.
  server.world.advance(1)
  const { revision } = await server.ok(`/agents/${agentId}/config`, { method: 'PUT', body, token })
  return revision
}
const runtime = (values: Record<string, unknown>) => ({ config: { runtime: values } })
const rollback = (agentId: string, revisionId: string, token = member.token) =>
  server.call(`/agents/${agentId}/revisions/${revisionId}/rollback`, { method: 'POST', token })
const revert = (agentId: string, entryId: string, token = member.token) =>
  server.call(`/agents/${agentId}/history/${entryId}/revert`, { method: 'POST', token })
const unknown = crypto.randomUUID()

describe('revisions', () => {
  test('are listed newest first, page by page, and read one by one', async () => {
    const agent = await server.createAgent()
    const made = []
    for (const maxTurns of [1, 2, 3]) made.unshift(await put(agent.id, runtime({ maxTurns })))
    const first = await server.ok(`/agents/${agent.id}/revisions?limit=2`)
    expect(first).toMatchObject({ object: 'list', data: made.slice(0, 2), hasMore: true })
    const second = await server.ok(`/agents/${agent.id}/revisions?limit=2&after=${first.nextCursor}`)
    expect(second).toMatchObject({ data: made.slice(2), hasMore: false, nextCursor: null })
    expect(await server.ok(`/agents/${agent.id}/revisions/${made[1].id}`)).toEqual(made[1])
    expect(made[1]).toMatchObject({
      changedKeys: ['runtime.maxTurns'],
      source: 'patch',
      beforeConfig: { runtime: { maxTurns: 1 } },
      afterConfig: { runtime: { maxTurns: 2 } },
    })
    const other = await server.createAgent()
    const read = async (path: string) => outcomeOf(await server.call(`/agents/${path}`))
    expect(await read(`${other.id}/revisions/${made[1].id}`)).toBe('404 resource_not_found')
    expect(await read(`${agent.id}/revisions/${unknown}`)).toBe('404 resource_not_found')
    expect(await read(`${agent.id}/revisions/newest`)).toBe('400 invalid_id_format')
    expect(await read(`${agent.id}/revisions?after=junk`)).toBe('400 invalid_cursor')
  })

  test('are an agent’s own; people read those of a deleted agent too', async () => {
    const { agent, token } = await server.agentCaller()
    const own = await put(agent.id, runtime({ maxTurns: 9 }))
    const other = await server.createAgent()
    const theirs = await put(other.id, runtime({ maxTurns: 9 }))
    expect((await server.ok('/agents/me/revisions', { token })).data).toEqual([own])
    expect(await server.ok(`/agents/me/revisions/${own.id}`, { token })).toEqual(own)
    for (const path of ['revisions', `revisions/${theirs.id}`, 'history'])
      expect(outcomeOf(await server.call(`/agents/${other.id}/${path}`, { token }))).toBe('403 agent_self_only')
    await server.ok(`/agents/${other.id}`, { method: 'DELETE' })
    expect((await server.ok(`/agents/${other.id}/revisions`)).data).toEqual([theirs])
    expect(outcomeOf(await rollback(other.id, theirs.id))).toBe('404 resource_not_found')
    expect(outcomeOf(await revert(other.id, theirs.id))).toBe('404 resource_not_found')
  })

  test('are rolled back to as a whole, which is a revision of its own', async () => {
    const agent = await server.createAgent({ identityMd: 'First.' })
    const early = await put(agent.id, { ...runtime({ model: 'gpt-5', maxTurns: 5 }), agentMd: 'Second.' })
    await put(agent.id, { ...runtime({ model: null, triggers: { wakeOnHook: false } }), agentMd: 'Third.' })
    const reply = await rollback(agent.id, early.id)
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      agentMd: 'Second.',
      config: { runtime: { model: 'gpt-5', maxTurns: 5, triggers: { wakeOnHook: true } } },
      revision: {
        source: 'rollback',
        changedKeys: ['runtime.model', 'runtime.triggers.wakeOnHook', 'agentMd'],
        afterConfig: early.afterConfig,
      },
    })
    const { revision, ...settings } = reply.body
    expect(await server.ok(`/agents/${agent.id}/config`)).toEqual(settings)
    expect((await server.ok(`/agents/${agent.id}/revisions`)).data[0]).toEqual(revision)
    // As it is already, the answer is of the older kind.
    for (const id of [early.id, revision.id]) {
      const same = await rollback(agent.id, id)
      expect([same.status, same.body]).toEqual([409, { error: expect.any(String) }])
    }
    expect(outcomeOf(await rollback(agent.id, unknown))).toBe('404 resource_not_found')
  })

  test('are held to the rules of any change of settings', async () => {
    const agent = await server.createAgent()
    const open = await put(agent.id, { config: { permissions: { tools: { allow: ['Bash'] } } } })
    await put(agent.id, { config: { permissions: { tools: { allow: [] } } } })
    expect(outcomeOf(await rollback(agent.id, open.id, member.token))).toBe('403 http_exception')
    expect((await rollback(agent.id, open.id, admin.token)).body.config.permissions.tools.allow).toEqual(['Bash'])
    const cloud = await put(agent.id, runtime({ environment: 'cloud' }))
    await put(agent.id, runtime({ environment: 'device' }))
    const device = await enrol(server)
    const body = { displayName: 'code', rootPath: '/home/x', deviceId: device.publicId }
    const folder = await server.ok('/folders', { body })
    await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { defaultFolderId: folder.shortId } })
    const refused = '422 folder_requires_device_environment'
    expect(outcomeOf(await rollback(agent.id, cloud.id))).toBe(refused)
    const back = (await server.ok(`/agents/${agent.id}/history`)).data[0]
    expect(outcomeOf(await revert(agent.id, back.id))).toBe(refused)
  })

  test('by an agent: its own, at once or after approval', async () => {
    const { agent, runId, token } = await server.agentCaller()
    const other = await server.createAgent()
    const theirs = await put(other.id, runtime({ maxTurns: 9 }))
    expect(outcomeOf(await rollback(other.id, theirs.id, token))).toBe('403 agent_self_only')
    const first = await put(agent.id, runtime({ maxTurns: 9 }))
    await put(agent.id, runtime({ maxTurns: 10 }))
    expect((await rollback('me', first.id, token)).body.config.runtime.maxTurns).toBe(9)
    await put(agent.id, runtime({ environment: 'cloud' }))
    const reply = await rollback('me', first.id, token)
    expect([reply.status, reply.body.object]).toEqual([202, 'platform_change'])
    const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
    expect(stored).toMatchObject({
      routeId: 'agents.revisions.rollback',
      params: { agentId: agent.id, revisionId: first.id },
    })
    const between = async () => {
      const ending = { fence: null, exitReason: 'interrupted', errorMessage: null } as const
      await endRun(server.database.root, { runId, ...ending, at: server.world.now() })
    }
    const path = `/agents/me/revisions/${first.id}/rollback`
    const late = await halfRequest(server, path, { token, body: {}, between })
    expect(outcomeOf(late)).toBe('403 platform_change_requires_run')
  })
})

describe('history', () => {
  test('lists each change once, by kind and page', async () => {
    const agent = await server.createAgent()
    const first = await put(agent.id, runtime({ maxTurns: 1 }), member.token)
    server.world.advance(1)
    await server.ok(`/agents/${agent.id}/sessions/reset`, { method: 'POST' })
    const third = await put(agent.id, { agentMd: 'New.' })
    const list = async (query = '') => (await server.ok(`/agents/${agent.id}/history${query}`)).data
    const all = await list()
    expect(all).toEqual([
      expect.objectContaining({ id: third.id, kind: 'config', changedKeys: ['agentMd'], changedBy: admin.userId }),
      expect.objectContaining({ kind: 'sessions', isRevertible: false, revisionId: null, revertedEntryId: null }),
      {
        object: 'agent_history_entry',
        id: first.id,
        agentId: agent.id,
        kind: 'config',
        changedKeys: ['runtime.maxTurns'],
        description: 'Changed runtime.maxTurns.',
        changedBy: member.userId,
        isRevertible: true,
        revisionId: first.id,
        revertedEntryId: null,
        createdAt: first.createdAt,
      },
    ])
    expect(await list('?kind=sessions')).toEqual([all[1]])
    expect(await list('?kind=config')).toEqual([all[0], all[2]])
    expect(await list('?kind=skill&kind=rule')).toEqual([])
    expect(outcomeOf(await server.call(`/agents/${agent.id}/history?kind=other`))).toBe('400 validation_error')
    const page = await server.ok(`/agents/${agent.id}/history?limit=1`)
    expect(await list(`?limit=5&after=${page.nextCursor}`)).toEqual(all.slice(1))
  })

  test('permission rules alone are a `rule`, skill folders alone a `skill`, and each can be undone', async () => {
    const agent = await server.createAgent()
    const set = (permissions: object, more: object = {}) => put(agent.id, { config: { permissions, ...more } })
    const folders = { skillFolders: ['.agents/skills'] }
    await set({ tools: { deny: ['WebFetch'] } })
    await set({ tools: { allow: ['Read'], ask: ['Bash'] } })
    await put(agent.id, runtime(folders))
    await set({ tools: { defaultMode: 'strict' } })
    await set({ tools: { deny: [] } }, { runtime: { maxTurns: 2 } })
    await put(agent.id, runtime({ skillFolders: null, maxTurns: 3 }))
    const list = async (query = '') => (await server.ok(`/agents/${agent.id}/history${query}`)).data
    const all = await list()
    const kinds = all.map(({ kind }: { kind: string }) => kind)
    expect(kinds.toSorted()).toEqual(['config', 'config', 'config', 'rule', 'rule', 'skill'])
    const rules = await list('?kind=rule')
    expect(rules.map((entry: { changedKeys: string[] }) => entry.changedKeys.join()).toSorted()).toEqual([
      'permissions.tools.allow,permissions.tools.ask',
      'permissions.tools.deny',
    ])
    const [skill] = await list('?kind=skill')
    expect(skill).toMatchObject({ changedKeys: ['runtime.skillFolders'], isRevertible: true, revisionId: skill.id })
    const asked = rules.find((entry: { changedKeys: string[] }) => entry.changedKeys.length === 2)
    const undone = await revert(agent.id, asked.id, admin.token)
    expect(undone.body).toMatchObject({
      config: { permissions: { tools: { allow: [], ask: [] } } },
      entry: { kind: 'rule', revertedEntryId: asked.id },
    })
  })

  test('one change is undone, and what was changed since in other settings stays', async () => {
    const agent = await server.createAgent({ identityMd: 'Old.' })
    const first = await put(agent.id, { ...runtime({ maxTurns: 5, triggers: { wakeOnHook: false } }), agentMd: 'New.' })
    await put(agent.id, runtime({ model: 'gpt-5' }))
    const reply = await revert(agent.id, first.id)
    expect(reply.body).toMatchObject({
      agentMd: 'Old.',
      config: { runtime: { model: 'gpt-5', maxTurns: null, triggers: { wakeOnHook: true } } },
      entry: {
        kind: 'config',
        changedKeys: first.changedKeys,
        revertedEntryId: first.id,
        description: 'Undid: Changed runtime.maxTurns, runtime.triggers.wakeOnHook, agentMd.',
      },
    })
    // The undoing is a change, and can be undone; what is undone already leaves no trace.
    expect((await revert(agent.id, first.id)).body.entry).toBeNull()
    const again = await revert(agent.id, reply.body.entry.id)
    expect(again.body).toMatchObject({ agentMd: 'New.', config: { runtime: { model: 'gpt-5', maxTurns: 5 } } })
    expect((await server.ok(`/agents/${agent.id}/history`)).data).toHaveLength(4)
    // A person may leave the agent to the entry.
    expect((await revert('me', first.id)).body.entry.agentId).toBe(agent.id)
  })

  test('refuses what cannot be undone, or not by this caller', async () => {
    const { agent, token } = await server.agentCaller()
    const other = await server.createAgent()
    const theirs = await put(other.id, runtime({ maxTurns: 9 }))
    expect(outcomeOf(await revert(other.id, theirs.id, token))).toBe('403 agent_self_only')
    for (const reference of [agent.id, 'me']) {
      expect(outcomeOf(await revert(reference, unknown))).toBe('404 resource_not_found')
      expect(outcomeOf(await revert(reference, 'newest'))).toBe('400 invalid_id_format')
    }
    expect(outcomeOf(await revert(agent.id, theirs.id))).toBe('404 resource_not_found')
    expect(outcomeOf(await revert('me', theirs.id, token))).toBe('404 resource_not_found')
    const own = await put(agent.id, runtime({ maxTurns: 4 }))
    expect((await revert('me', own.id, token)).body.config.runtime.maxTurns).toBeNull()
    const human = await put(agent.id, runtime({ maxTurns: 4, triggers: { wakeOnHook: false } }))
    const refused = await revert('me', human.id, token)
    expect(outcomeOf(refused)).toBe('403 agent_config_human_only')
    expect(refused.body.error.details.changedKeys).toContain('runtime.triggers.wakeOnHook')
    const granted = await put(agent.id, { config: { permissions: { capabilities: ['manage_runs'] } } })
    expect(outcomeOf(await revert(agent.id, granted.id))).toBe('403 http_exception')
    expect((await revert(agent.id, granted.id, admin.token)).status).toBe(200)
    await server.ok(`/agents/${agent.id}/sessions/reset`, { method: 'POST' })
    const [reset] = (await server.ok(`/agents/${agent.id}/history?kind=sessions`)).data
    expect(outcomeOf(await revert(agent.id, reset.id))).toBe('422 config_revert_unsupported')
    // An entry of an agent that the caller does not see is not there.
    const hidden = await server.createAgent({ visibility: 'private' })
    const secret = await put(hidden.id, runtime({ maxTurns: 2 }), server.owner.token)
    for (const reference of ['me', hidden.id])
      expect(outcomeOf(await revert(reference, secret.id))).toBe('404 resource_not_found')
  })
})
