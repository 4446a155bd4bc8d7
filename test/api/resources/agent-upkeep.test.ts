import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPlatformChange } from '../../../control-plane/resources/platform-changes/store.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { halfRequest } from '../../kit/half-request.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { endRun } from '../../kit/end-run.ts'

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const codesOf = async (agentId: string) => {
  const { audit } = await server.ok(`/agents/${agentId}/audit`)
  return audit.map((warning: { code: string }) => warning.code) as string[]
}
const reset = (agentId: string, token = server.owner.token) =>
  server.call(`/agents/${agentId}/sessions/reset`, { method: 'POST', token })

describe('the doctor', () => {
  test('says what is wrong now, and changes nothing', async () => {
    const boss = await server.createAgent()
    const agent = await server.createAgent({ model: 'gpt-of-tomorrow', harness: null, command: null })
    await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { reportingTo: boss.id } })
    const found = ['no_folder', 'no_device', 'model_unknown', 'permissions_allow_everything', 'agent_md_empty']
    expect(await codesOf(agent.id)).toEqual(found)
    await server.ok(`/agents/${boss.id}`, { method: 'DELETE' })
    expect(await codesOf(agent.id)).toEqual([...found.slice(0, 4), 'manager_missing', 'agent_md_empty'])
    const put = { config: { runtime: { model: 'gpt-5', harness: 'claude', reasoningEffort: 'max' } }, agentMd: 'Work.' }
    await server.ok(`/agents/${agent.id}/config`, { method: 'PUT', body: put })
    expect(await codesOf(agent.id)).toEqual(
      expect.arrayContaining(['model_not_of_harness', 'effort_not_supported', 'manager_missing']),
    )
    const before = await server.ok(`/agents/${agent.id}`)
    await server.ok(`/agents/${agent.id}/audit`)
    expect(await server.ok(`/agents/${agent.id}`)).toEqual(before)
    expect(outcomeOf(await server.call('/agents/@nobody/audit'))).toBe('404 resource_not_found')
  })

  test('looks at the folder’s device and what is installed on it', async () => {
    const device = await FakeDevice.connect(server)
    const folder = await server.ok('/folders', {
      body: { displayName: 'code', rootPath: '/home/x', deviceId: device.identity.publicId },
    })
    const agent = await server.createAgent({ harness: 'codex', command: null, defaultFolderId: folder.shortId })
    const readiness = async (codex: { installed: boolean; signedIn: boolean | null; tooOld?: boolean }) => {
      const harnesses = { codex: { ...codex, version: null, message: 'type this' } }
      device.send({ type: 'readiness', providerReadiness: { harnesses }, capturedAt: server.world.now() })
    }
    await readiness({ installed: false, signedIn: null })
    await expect.poll(() => codesOf(agent.id)).toContain('harness_not_installed')
    await readiness({ installed: true, signedIn: false })
    await expect.poll(() => codesOf(agent.id)).toContain('harness_not_signed_in')
    await readiness({ installed: true, signedIn: false, tooOld: true })
    await expect.poll(() => codesOf(agent.id)).toContain('harness_too_old')
    const { audit } = await server.ok(`/agents/${agent.id}/audit`)
    expect(audit).toContainEqual(
      expect.objectContaining({ code: 'harness_too_old', message: expect.stringContaining(': type this') }),
    )
    await readiness({ installed: true, signedIn: true })
    await expect.poll(() => codesOf(agent.id)).not.toContain('harness_not_signed_in')
    const gone = await server.createAgent({ defaultFolderId: folder.shortId })
    await server.ok(`/folders/${folder.shortId}`, { method: 'DELETE' })
    expect(await codesOf(gone.id)).toContain('folder_missing')
    await device.disconnect()
  })
})

describe('resetting the sessions', () => {
  test('kills the tokens of live runs, and lets no later run go on with an older session', async () => {
    const device = await FakeDevice.connect(server)
    const agent = await server.createAgent({ harness: 'claude', command: null })
    const retry = async (runId: string) => (await server.ok(`/runs/${runId}/retry`, { body: {} })).runId as string
    await server.startRun(agent.id)
    const first = await device.take()
    await first.events({ kind: 'session', data: { sessionId: 'old' } })
    await first.end('interrupted', { sessionId: 'old' })
    await retry(first.runId)
    const second = await device.take()
    expect(second.spec.resumeSessionId).toBe('old')
    expect((await server.call('/agents/me', { token: second.token })).status).toBe(200)
    server.world.advance(10)
    const reply = await reset(agent.id)
    expect(reply.body).toEqual({ agentId: agent.id, sessionsResetAt: expect.any(String) })
    expect(outcomeOf(await server.call('/agents/me', { token: second.token }))).toBe('401 auth.agent_jwt_revoked')
    // The live run is not touched otherwise; its end comes as ever.
    await second.end('error', { sessionId: 'old' })
    server.world.advance(10)
    await retry(second.runId)
    const third = await device.take()
    expect(third.spec.resumeSessionId).toBeNull()
    expect((await server.call('/agents/me', { token: third.token })).status).toBe(200)
    await third.events({ kind: 'session', data: { sessionId: 'new' } })
    await third.end('interrupted', { sessionId: 'new' })
    await retry(third.runId)
    const fourth = await device.take()
    expect(fourth.spec.resumeSessionId).toBe('new')
    await fourth.end('completed')
    await device.disconnect()
  })

  test.each([
    ['codex', 'begins a new session', null],
    ['claude', 'goes on, since the session takes the new one', 'begun'],
  ] as const)('an agent of %s whose AGENT.md has changed %s', async (harness, _, sessionId) => {
    const device = await FakeDevice.connect(server)
    const agent = await server.createAgent({ harness, command: null })
    const again = async (runId: string) => {
      await server.ok(`/runs/${runId}/retry`, { body: {} })
      const run = await device.take()
      await run.end('interrupted', { sessionId: 'begun' })
      return run
    }
    const write = (agentMd: string) =>
      server.ok(`/agents/${agent.id}/config`, { method: 'PUT', body: { config: {}, agentMd } })
    await write('Be brief.')
    await server.startRun(agent.id)
    const first = await device.take()
    await first.end('interrupted', { sessionId: 'begun' })
    const second = await again(first.runId)
    expect(second.spec.resumeSessionId).toBe('begun')
    await write('Be long.')
    expect((await again(second.runId)).spec).toMatchObject({
      resumeSessionId: sessionId,
      agentMd: expect.stringContaining('Be long.'),
    })
    await device.disconnect()
  })

  test('a run that waits, or was just offered, forgets the session it was to go on with', async () => {
    const device = await FakeDevice.connect(server)
    const agent = await server.createAgent({ harness: 'claude', command: null })
    await server.startRun(agent.id)
    const first = await device.take()
    await first.events({ kind: 'session', data: { sessionId: 'old' } })
    await first.end('interrupted', { sessionId: 'old' })
    await server.ok(`/runs/${first.runId}/retry`, { body: {} })
    const offer = await device.next('run.offer')
    expect(offer.spec.resumeSessionId).toBe('old')
    expect((await reset(agent.id)).status).toBe(200)
    const anew = await device.next('run.offer')
    expect(anew).toMatchObject({ runId: offer.runId, fence: offer.fence + 1, spec: { resumeSessionId: null } })
    device.send({ type: 'run.accepted', runId: offer.runId, fence: offer.fence })
    expect(await device.next('run.withdrawn')).toMatchObject({ fence: offer.fence })
    device.send({ type: 'run.accepted', runId: anew.runId, fence: anew.fence })
    await device.next('run.start')
    await server.ok(`/runs/${anew.runId}/cancel`, { body: {} })
    await device.disconnect()
  })

  test('by an agent waits for approval, also of itself', async () => {
    const agent = await server.createAgent()
    const runId = await server.startRun(agent.id)
    const token = await server.runToken(runId)
    const reply = await reset('me', token)
    expect([reply.status, reply.body.object]).toEqual([202, 'platform_change'])
    const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
    expect(stored).toMatchObject({ routeId: 'agents.sessions.reset', params: { agentId: agent.id } })
    const between = async () => {
      const ending = { fence: null, exitReason: 'interrupted', errorMessage: null } as const
      await endRun(server.database.root, { runId, ...ending, at: server.world.now() })
    }
    const late = await halfRequest(server, '/agents/me/sessions/reset', { token, body: {}, between })
    expect(outcomeOf(late)).toBe('403 platform_change_requires_run')
    expect(outcomeOf(await reset('@nobody', member.token))).toBe('404 resource_not_found')
  })
})
