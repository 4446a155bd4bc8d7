import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPlatformChange } from '../../../control-plane/resources/platform-changes/store.ts'
import { enrol } from '../../kit/fake-device.ts'
import { halfRequest } from '../../kit/half-request.ts'
import { startWithPeople } from '../../kit/people.ts'
import { newRepo } from '../facts/kit/recipe.ts'
import { codeOf, outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { endRun } from '../../kit/end-run.ts'

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const patch = (id: string, body: unknown, token?: string) =>
  server.call(`/agents/${id}`, { method: 'PATCH', body, ...(token === undefined ? {} : { token }) })

async function folderOf(person: Person): Promise<string> {
  const device = await enrol(server, { token: person.token })
  const folder = await server.ok('/folders', {
    token: person.token,
    body: { displayName: 'code', rootPath: '/home/x/code', deviceId: device.publicId },
  })
  return folder.shortId as string
}

describe('create', () => {
  test('returns the agent with all its fields, its handle and the doctor’s warnings', async () => {
    const reply = await server.call('/agents', {
      body: { name: 'Çelik Straße 9', description: 'Builds', model: 'gpt-5', reportingTo: null, unknownKey: 1 },
      token: member.token,
    })
    expect(reply.status).toBe(201)
    const { audit, ...agent } = reply.body
    expect(agent).toMatchObject({
      object: 'agent',
      handle: '@celik-strasse-9',
      role: 'agent',
      status: 'active',
      harness: 'codex',
      environment: 'device',
      visibility: 'company',
      ownerUserId: member.uuid,
      workspaceId: member.workspaceId,
      wakeOnAssignment: true,
      spentMonthlyCents: 0,
      deletedAt: null,
    })
    expect(agent.id).toMatch(/^agt_[0-9A-Za-z]{16}$/)
    expect(audit.map((warning: { code: string }) => warning.code)).toEqual(
      expect.arrayContaining(['no_device', 'agent_md_empty', 'permissions_allow_everything']),
    )
    expect(await server.ok(`/agents/${agent.id}`, { token: member.token })).toEqual(agent)
  })

  test('numbers handles that are taken, keeps references free, and takes the id where a name gives none', async () => {
    const make = async (name: string) => (await server.createAgent({ name })).handle as string
    expect(await make('Twin')).toBe('@twin')
    expect(await make('twin')).toBe('@twin-2')
    expect(await make('TWIN!')).toBe('@twin-3')
    expect(await make('me')).toBe('@me-2')
    const nameless = await server.createAgent({ name: '测试' })
    expect(nameless.handle).toBe(nameless.id)
  })

  test('two writes at once never share a handle', async () => {
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => server.call('/agents', { body: { name: 'Racer' } })),
    )
    expect(replies.map(outcomeOf)).toEqual(replies.map(() => '201'))
    expect(new Set(replies.map(({ body }) => body.handle as string)).size).toBe(replies.length)
  })

  test('refuses what does not fit', async () => {
    const refused = async (body: unknown) => outcomeOf(await server.call('/agents', { body }))
    expect(await refused({})).toBe('400 validation_error')
    expect(await refused({ name: 'x', maxTurns: 1001 })).toBe('400 validation_error')
    expect(await refused({ name: 'x', reportingTo: 'agt_0000000000000000' })).toBe('404 resource_not_found')
    expect(await refused({ name: 'x', defaultFolderId: 'fs_0000000000000000' })).toBe('404 resource_not_found')
    const folder = await folderOf(server.owner)
    expect(await refused({ name: 'x', environment: 'cloud', defaultFolderId: folder })).toBe(
      '422 folder_requires_device_environment',
    )
  })

  test('a folder on somebody else’s device is not given away, but by an admin', async () => {
    const folder = await folderOf(member)
    const body = { name: 'Borrower', defaultFolderId: folder }
    const refused = await server.call('/agents', { body, token: other.token })
    expect(outcomeOf(refused)).toBe('403 default_folder_forbidden')
    expect(refused.body.error.param).toBe('defaultFolderId')
    expect((await server.call('/agents', { body, token: member.token })).status).toBe(201)
    expect((await server.call('/agents', { body, token: admin.token })).status).toBe(201)
  })

  test('by an agent waits for approval', async () => {
    const { token, agent, runId } = await server.agentCaller()
    const reply = await server.call('/agents', { body: { name: 'Child', role: 'helper' }, token })
    expect(reply.status).toBe(202)
    expect(reply.body).toEqual({
      object: 'platform_change',
      approvalId: expect.stringMatching(/^apr_/),
      status: 'pending',
    })
    const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
    expect(stored).toMatchObject({ routeId: 'agents.create', agentRef: agent.id, runId, status: 'pending' })
    expect(stored?.body).toMatchObject({ name: 'Child', role: 'helper' })
    expect((await server.ok('/agents?q=Child')).data).toEqual([])
  })
})

/** Ends the run while a request of it is under way. */
const endRunBehind = (runId: string) => async () => {
  await endRun(server.database.root, {
    runId: idFrom(runId),
    fence: null,
    exitReason: 'interrupted',
    errorMessage: null,
    at: server.world.now(),
  })
}

test('a change asked for by a run that has just ended is refused', async () => {
  for (const [method, path] of [
    ['POST', '/agents'],
    ['PATCH', '/agents/me'],
  ] as const) {
    const { token, runId } = await server.agentCaller()
    const between = endRunBehind(runId)
    const reply = await halfRequest(server, path, { method, token, body: { name: 'Late' }, between })
    expect(outcomeOf(reply)).toBe('403 platform_change_requires_run')
  }
})

describe('update', () => {
  test('changes the identity and answers with the audit; a new name gives a new handle', async () => {
    const agent = await server.createAgent({ name: 'Before' })
    const reply = await patch(agent.id, { name: 'After', role: 'lead', description: null, visibility: 'private' })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({ handle: '@after', name: 'After', role: 'lead', visibility: 'private' })
    expect(Array.isArray(reply.body.audit)).toBe(true)
    // The same slug again keeps the handle.
    expect((await patch(agent.id, { name: 'AFTER' })).body.handle).toBe('@after')
    await server.createAgent({ name: 'Occupied' })
    expect((await patch(agent.id, { name: 'Occupied' })).body.handle).toBe('@occupied-2')
    expect((await patch(agent.id, { name: 'occupied' })).body.handle).toBe('@occupied-2')
  })

  test('the status moves as the table says and no other way', async () => {
    const moves: Record<string, string[]> = {
      active: ['running', 'terminated'],
      idle: ['running', 'terminated'],
      running: ['idle', 'active', 'error', 'terminated'],
      error: ['idle', 'active', 'terminated'],
      terminated: [],
    }
    const { root } = server.database
    const agent = await server.createAgent()
    for (const [from, allowed] of Object.entries(moves))
      for (const to of Object.keys(moves)) {
        await root('agents').where({ id: agent.id }).update({ status: from })
        const reply = await patch(agent.id, { status: to })
        if (from === to || allowed.includes(to)) expect([from, to, reply.body.status]).toEqual([from, to, to])
        else {
          expect([from, to, outcomeOf(reply)]).toEqual([from, to, '422 invalid_status_transition'])
          expect(reply.body.error.allowedValues).toEqual(allowed)
        }
      }
  })

  test('settings are refused by name', async () => {
    const agent = await server.createAgent()
    for (const key of ['model', 'maxTurns', 'harness', 'environment', 'permissions', 'toolPermissionMode', 'config']) {
      const reply = await patch(agent.id, { [key]: null })
      expect([key, outcomeOf(reply)]).toEqual([key, '400 config_write_forbidden'])
      expect(reply.body.error.param).toBe(key)
    }
  })

  test('nobody reports to somebody below', async () => {
    const a = await server.createAgent({ name: 'Chief' })
    const b = await server.createAgent({ name: 'Middle', reportingTo: '@chief' })
    const c = await server.createAgent({ name: 'Low', reportingTo: b.id })
    for (const reference of [a.id, b.id, c.id])
      expect(outcomeOf(await patch(a.id, { reportingTo: reference }))).toBe('400 reporting_cycle')
    expect((await patch(c.id, { reportingTo: a.id })).status).toBe(200)
    expect((await patch(c.id, { reportingTo: null })).body.reportingTo).toBeNull()
    expect(outcomeOf(await patch(c.id, { reportingTo: '@nobody-at-all' }))).toBe('404 resource_not_found')
  })

  test('folder and repo are set by the owner or an admin', async () => {
    const agent = await server.createAgent({}, member.token)
    const folder = await folderOf(member)
    const repo = await newRepo({ server })
    expect(outcomeOf(await patch(agent.id, { defaultFolderId: folder }, other.token))).toBe(
      '403 default_folder_forbidden',
    )
    expect(outcomeOf(await patch(agent.id, { defaultRepoId: repo }, other.token))).toBe('403 default_repo_forbidden')
    for (const person of [member, admin]) {
      const reply = await patch(agent.id, { defaultFolderId: folder, defaultRepoId: repo }, person.token)
      expect(reply.body).toMatchObject({ defaultFolderId: folder, defaultRepoId: repo })
      await patch(agent.id, { defaultFolderId: null, defaultRepoId: null }, person.token)
    }
    const elsewhere = await newRepo({ server }, (await server.addPerson('owner', 'elsewhere')).token)
    for (const defaultRepoId of [elsewhere, crypto.randomUUID()]) {
      expect(outcomeOf(await patch(agent.id, { defaultRepoId }, member.token))).toBe('404 repo_not_found')
      const made = await server.call('/agents', { body: { name: 'X', defaultRepoId } })
      expect(outcomeOf(made)).toBe('404 repo_not_found')
    }
    expect(outcomeOf(await patch(agent.id, { defaultFolderId: 'fs_0000000000000000' }, member.token))).toBe(
      '404 resource_not_found',
    )
    const cloud = await server.createAgent({ environment: 'cloud' }, member.token)
    expect(outcomeOf(await patch(cloud.id, { defaultFolderId: folder }, member.token))).toBe(
      '422 folder_requires_device_environment',
    )
  })

  test('AGENT.md sent by a person is stored with a revision', async () => {
    const agent = await server.createAgent()
    expect((await patch(agent.id, { identityMd: '# Hello' })).status).toBe(200)
    expect((await server.ok(`/agents/${agent.id}/identity`)).agentMd).toBe('# Hello')
    expect(await server.database.root('agent_revisions').where({ agent_id: agent.id })).toHaveLength(1)
  })

  test('by an agent waits for approval, also of itself; AGENT.md never goes this way', async () => {
    const { agent, token } = await server.agentCaller({ name: 'Ambitious' })
    const target = await server.createAgent({ name: 'Target' })
    for (const reference of ['me', target.id, '@target']) {
      const reply = await patch(reference, { name: 'Renamed' }, token)
      expect(reply.status).toBe(202)
      const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
      expect(stored?.params).toEqual({ agentId: reference === 'me' ? agent.id : target.id })
      expect(stored?.body).toEqual({ name: 'Renamed' })
    }
    expect((await server.ok(`/agents/${target.id}`)).name).toBe('Target')
    expect(outcomeOf(await patch('me', { identityMd: 'x' }, token))).toBe('400 identity_write_forbidden')
    expect(outcomeOf(await patch('me', { model: 'x' }, token))).toBe('400 config_write_forbidden')
    expect(outcomeOf(await patch('@nobody', { name: 'x' }, token))).toBe('404 resource_not_found')
  })

  test('two writers do not overwrite each other in silence', async () => {
    const agent = await server.createAgent({ name: 'Contended' })
    const replies = await Promise.all(
      Array.from({ length: 4 }, (_, n) => patch(agent.id, { description: `from ${n}` })),
    )
    expect(replies.map(outcomeOf)).toEqual(replies.map(() => '200'))
    expect(codeOf(await patch(agent.id, { name: '' }))).toBe('validation_error')
  })
})
