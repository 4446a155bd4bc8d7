import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listSpecs } from '../../../control-plane/resources/runs/details-store.ts'
import { findPermit } from '../../../control-plane/sandbox/broker/permits.ts'
import { insertSandbox } from '../../../control-plane/resources/sandboxes/store.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { sharedOf, startEngineless } from '../../kit/engineless.ts'
import type { TestServer } from '../../kit/server.ts'
import { sandboxRow } from '../../store/sandbox-rows.ts'

let server: TestServer
beforeAll(async () => {
  server = await startEngineless({ SVC_SANDBOX_ANTHROPIC_KEY: 'sk-ant-operator' })
})
afterAll(() => server.stop())

const agentWith = async (body: object, secrets: Record<string, string> = {}) => {
  const agent = await server.createAgent({ environment: 'cloud', ...body })
  for (const [envVarName, value] of Object.entries(secrets)) {
    const name = `${envVarName}-${server.world.uuid()}`
    const headers = { 'idempotency-key': server.world.uuid() }
    const { id } = await server.ok('/secrets', { body: { name, envVarName, value }, headers })
    await server.ok(`/secrets/${id}/grants`, {
      body: { agentId: agent.id },
      headers: { 'idempotency-key': server.world.uuid() },
    })
  }
  return agent.id as string
}

const wake = (agentId: string) => server.call(`/agents/${agentId}/runs`, { body: { prompt: 'Build' } })

describe('the key of a run in the cloud', () => {
  test.each([
    [
      'claude, paid by the operator',
      { harness: 'claude' },
      {},
      { provider: 'anthropic', variable: 'ANTHROPIC_API_KEY' },
    ],
    [
      'claude with a key of its own',
      { harness: 'claude' },
      { ANTHROPIC_API_KEY: 'sk-own', GITHUB_TOKEN: 'gh-secret-1' },
      { provider: 'anthropic', variable: 'ANTHROPIC_API_KEY' },
    ],
    [
      'codex with a key of its own',
      { harness: 'codex' },
      { OPENAI_API_KEY: 'sk-own' },
      { provider: 'openai', variable: 'OPENAI_API_KEY' },
    ],
    [
      'opencode with the key of its provider',
      { harness: 'opencode', model: 'openai/gpt-5' },
      { ANTHROPIC_API_KEY: 'sk-other', OPENAI_API_KEY: 'sk-own' },
      { provider: 'openai', variable: 'OPENAI_API_KEY' },
    ],
  ])('%s', async (_name, body, secrets, brokeredModel) => {
    const { body: answer } = await wake(await agentWith(body, secrets))
    const runId = answer.runPublicId as string
    const root = server.database.root
    const spec = (await listSpecs(root, [idFrom(runId)])).get(idFrom(runId))!
    expect(spec).toMatchObject({ brokeredModel, limits: { warnAtCalls: 800, callMs: 5 * 3_600_000 } })
    expect(spec.limits.runMs).toBeGreaterThan(5 * 3_600_000)
    const manifest = await server.ok(`/runs/${runId}/manifest`)
    const names = Object.keys(secrets).filter((name) => name !== brokeredModel.variable)
    const leftOut = names.map((name) => ({ name, reason: 'no secret enters a sandbox' }))
    expect(manifest.envKeysLeftOut).toEqual(leftOut)
    expect(manifest.envKeys).toContain(brokeredModel.variable)
    // What it would be shown as once it has a session.
    await root('runs').where({ id: runId }).update({ session_id: 'session' })
    const { effectiveSettings } = await server.ok(`/runs/${runId}`)
    const hasOwn = Object.keys(secrets).length > 0
    expect(effectiveSettings).toMatchObject({ accessMode: hasOwn ? 'byok' : 'credits' })
    expect(effectiveSettings.providerKeyId).toEqual(hasOwn ? expect.stringMatching(/^sec_/) : null)
  })

  test.each([
    [
      'cursor, which nobody can lead elsewhere',
      { harness: 'cursor' },
      { CURSOR_API_KEY: 'key' },
      'credential_unbrokerable',
    ],
    ['codex without a key', { harness: 'codex' }, {}, 'credential_unbrokerable'],
    [
      'codex with the key of another provider',
      { harness: 'codex' },
      { ANTHROPIC_API_KEY: 'k' },
      'credential_unbrokerable',
    ],
    ['opencode without a provider', { harness: 'opencode' }, { OPENAI_API_KEY: 'k' }, 'credential_unbrokerable'],
    [
      'opencode with an unknown provider',
      { harness: 'opencode', model: 'google/gemini' },
      { GOOGLE_API_KEY: 'k' },
      'credential_unbrokerable',
    ],
    [
      'opencode, for which credits do not pay',
      { harness: 'opencode', model: 'anthropic/claude-sonnet-4-5' },
      {},
      'credits_harness_unsupported',
    ],
  ])('is refused to %s', async (_name, body, secrets, code) => {
    const reply = await wake(await agentWith(body, secrets))
    expect([reply.status, reply.body.error.code]).toEqual([422, code])
    expect(JSON.stringify(reply.body)).not.toContain('sk-ant-operator')
  })

  test('is not needed by a command', async () => {
    const agentId = await agentWith({ harness: 'command', command: 'true' }, { OPENAI_API_KEY: 'sk-own' })
    const { body } = await wake(agentId)
    expect(body).toMatchObject({ kind: 'pending', gateReason: 'no_ready_route' })
    const specs = await listSpecs(server.database.root, [body.runPublicId])
    expect(specs.get(body.runPublicId)!.limits.runMs).toBe(5 * 3_600_000)
    expect((await server.ok(`/runs/${body.runPublicId}/manifest`)).envKeysLeftOut).toEqual([
      { name: 'OPENAI_API_KEY', reason: 'no secret enters a sandbox' },
    ])
  })

  test('is the one that is stored when the model is asked, and none once it is taken away or the run is over', async () => {
    const agentId = await agentWith({ harness: 'claude' }, { ANTHROPIC_AUTH_TOKEN: 'own-token' })
    const runId = (await wake(agentId)).body.runPublicId as string
    const { root } = server.database
    await server.ok(`/workspaces/${server.owner.workspaceId}`, {
      method: 'PATCH',
      body: { sandboxEgress: ['Api.Example.com'] },
    })
    const row = sandboxRow(server.owner.workspaceId, { runId: idFrom(runId) })
    await insertSandbox(root, row)
    const models = {
      anthropic: { url: 'https://models.test', key: 'sk-ant-operator' },
      openai: { url: 'https://other.test', key: null },
    }
    const shared = sharedOf(server)
    const permit = () =>
      findPermit({ ...shared, root, world: server.world, log: silentLog, models, gitHost: null }, row.id)
    const model = { provider: 'anthropic', url: 'https://models.test' }
    const key = { value: 'own-token', header: 'bearer' }
    expect(await permit()).toEqual({
      egress: new Set(['api.example.com']),
      model: { ...model, key },
      repo: null,
      secrets: [],
      servers: [],
    })
    await root('secret_grants').where({ agent_id: agentId }).delete()
    // The operator does not step in for a key that is gone.
    expect(await permit()).toMatchObject({ model: { ...model, key: null } })
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(await permit()).toBeNull()
  })
})
