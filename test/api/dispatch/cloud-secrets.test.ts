import { idFrom, type AgentRef, type RunId } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLog } from '../../../control-plane/process/log.ts'
import { listSpecs } from '../../../control-plane/resources/runs/details-store.ts'
import { secretsForSandbox } from '../../../control-plane/resources/secrets/in-cloud.ts'
import { insertSandbox } from '../../../control-plane/resources/sandboxes/store.ts'
import { findPermit } from '../../../control-plane/sandbox/broker/permits.ts'
import { sharedOf, startEngineless } from '../../kit/engineless.ts'
import { waitFor } from '../../kit/programs.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { sandboxRow } from '../../store/sandbox-rows.ts'

let server: TestServer
let member: Person
beforeAll(async () => {
  server = await startEngineless({ SVC_SANDBOX_ANTHROPIC_KEY: 'sk-ant-operator' })
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

const keyed = () => ({ 'idempotency-key': server.world.uuid() })
const hosts = { brokerHosts: ['api.example.com'] }
const command = { harness: 'command', command: 'true' }

async function agentWith(secrets: Record<string, object>, settings: object = command) {
  const agent = await server.createAgent({ environment: 'cloud', ...settings })
  const ids: Record<string, string> = {}
  for (const [envVarName, more] of Object.entries(secrets)) {
    const name = `${envVarName} ${server.world.uuid()}`
    const body = { name, envVarName, value: `value of ${envVarName}`, agentId: agent.id, ...more }
    ids[envVarName] = (await server.ok('/secrets', { body, headers: keyed() })).id
  }
  return { agentId: agent.id as string, ids }
}

const wake = (agentId: string) => server.call(`/agents/${agentId}/runs`, { body: { prompt: 'Build' } })
const runOf = async (agentId: string) => (await wake(agentId)).body.runPublicId as string

/** What the run would have in its environment. */
async function insideOf(agentId: AgentRef, runId: RunId) {
  const { root } = server.database
  const spec = (await listSpecs(root, [runId])).get(runId)!
  return secretsForSandbox(
    root,
    { run: { id: runId, agentRef: agentId }, spec },
    { ...sharedOf(server), world: server.world },
  )
}

async function permitOf(runId: string) {
  const { root } = server.database
  const row = sandboxRow(server.owner.workspaceId, { runId: idFrom(runId) })
  await insertSandbox(root, row)
  const none = { url: 'https://models.test', key: null }
  const models = { anthropic: none, openai: none }
  const sources = { ...sharedOf(server), root, world: server.world, log: silentLog, models, gitHost: null }
  return () => findPermit(sources, row.id)
}

describe('the secrets of an agent in the cloud', () => {
  test('enter as placeholders of the run where they name hosts, and as they are where an admin said so', async () => {
    const { agentId } = await agentWith({
      NPM_TOKEN: hosts,
      PLAIN_ONE: { cloudPlain: true },
      BOTH_ONE: { ...hosts, cloudPlain: true },
      GITHUB_TOKEN: {},
      ANTHROPIC_API_KEY: {},
    })
    const [first, second] = [await runOf(agentId), await runOf((await agentWith({ NPM_TOKEN: hosts })).agentId)]
    const inside = await insideOf(idFrom(agentId), idFrom(first))
    expect(inside).toEqual({
      NPM_TOKEN: expect.stringMatching(/^brokered-[0-9a-f]{40}$/),
      PLAIN_ONE: 'value of PLAIN_ONE',
      BOTH_ONE: 'value of BOTH_ONE',
    })
    expect(await insideOf(idFrom(agentId), idFrom(first))).toEqual(inside)
    expect((await insideOf(idFrom(agentId), idFrom(second)))['NPM_TOKEN']).not.toBe(inside['NPM_TOKEN'])
    const { envKeys, envKeysLeftOut } = await server.ok(`/runs/${first}/manifest`)
    expect(envKeys).toEqual(expect.arrayContaining(['NPM_TOKEN', 'PLAIN_ONE', 'BOTH_ONE']))
    const reason = 'no secret enters a sandbox'
    expect(envKeysLeftOut).toEqual([
      { name: 'ANTHROPIC_API_KEY', reason },
      { name: 'GITHUB_TOKEN', reason },
    ])
    const permit = await permitOf(first)
    expect((await permit())?.secrets).toEqual([
      {
        name: 'NPM_TOKEN',
        placeholder: inside['NPM_TOKEN'],
        value: 'value of NPM_TOKEN',
        hosts: new Set(['api.example.com']),
      },
    ])
  })

  test('are of use as long as the agent has them, by the hosts that they name now', async () => {
    const { agentId, ids } = await agentWith({ NPM_TOKEN: hosts })
    const runId = await runOf(agentId)
    const permit = await permitOf(runId)
    const id = ids['NPM_TOKEN']!
    await server.ok(`/secrets/${id}`, { method: 'PATCH', body: { brokerHosts: ['other.test'] } })
    expect((await permit())?.secrets).toMatchObject([{ hosts: new Set(['other.test']) }])
    await server.ok(`/secrets/${id}/grants/${agentId}`, { method: 'DELETE' })
    expect((await permit())?.secrets).toEqual([])
    expect(await insideOf(idFrom(agentId), idFrom(runId))).toEqual({})
    await server.ok(`/secrets/${id}/grants`, { body: { agentId }, headers: keyed() })
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(await permit()).toBeNull()
  })

  test('the key of its harness stays outside, whatever else is said of it', async () => {
    const { agentId } = await agentWith(
      { ANTHROPIC_API_KEY: { ...hosts, cloudPlain: true }, ANTHROPIC_AUTH_TOKEN: hosts, OPENAI_API_KEY: hosts },
      { harness: 'claude' },
    )
    const runId = await runOf(agentId)
    expect(Object.keys(await insideOf(idFrom(agentId), idFrom(runId)))).toEqual(['OPENAI_API_KEY'])
    const { envKeys, envKeysLeftOut } = await server.ok(`/runs/${runId}/manifest`)
    expect(envKeys).toEqual(expect.arrayContaining(['ANTHROPIC_AUTH_TOKEN', 'OPENAI_API_KEY']))
    expect(envKeysLeftOut).toMatchObject([{ name: 'ANTHROPIC_API_KEY' }])
  })

  test('of several with one variable the last one counts', async () => {
    const { agentId } = await agentWith({ NPM_TOKEN: {} })
    const body = { name: server.world.uuid(), envVarName: 'NPM_TOKEN', value: 'the last one', agentId, ...hosts }
    await server.ok('/secrets', { body, headers: keyed() })
    const runId = await runOf(agentId)
    expect((await (await permitOf(runId))())?.secrets).toMatchObject([{ value: 'the last one' }])
  })
})

interface Waked {
  state: string
  answer: string
}

describe('a secret that has no way into a sandbox', () => {
  const unbrokerable = '422 credential_unbrokerable'

  test('has its runs refused with a sentence that names it and says what to do', async () => {
    const { agentId, ids } = await agentWith({ NPM_TOKEN: {}, DEPLOY_KEY: hosts })
    const reply = await wake(agentId)
    expect(outcomeOf(reply)).toBe(unbrokerable)
    const { message } = reply.body.error as { message: string }
    expect(message).toContain('(NPM_TOKEN)')
    expect(message).toContain(`svc secret update ${ids['NPM_TOKEN']} --broker-hosts`)
    expect(message).not.toContain('DEPLOY_KEY')
    expect(JSON.stringify(reply.body)).not.toContain('value of')
    const { audit } = await server.ok(`/agents/${agentId}/audit`)
    expect(audit).toContainEqual(expect.objectContaining({ code: 'credential_unbrokerable', message }))
    await server.ok(`/secrets/${ids['NPM_TOKEN']}`, { method: 'PATCH', body: hosts })
    expect((await wake(agentId)).body).toMatchObject({ kind: 'pending' })
  })

  test('does not count on a device, nor once it is plain or gone', async () => {
    const onDevice = await agentWith({ NPM_TOKEN: {} }, { ...command, environment: 'device' })
    expect((await wake(onDevice.agentId)).status).toBeLessThan(300)
    const plain = await agentWith({ NPM_TOKEN: {} })
    expect(outcomeOf(await wake(plain.agentId))).toBe(unbrokerable)
    const change = { method: 'PATCH', body: { cloudPlain: true } }
    await server.ok(`/secrets/${plain.ids['NPM_TOKEN']}`, change)
    expect((await wake(plain.agentId)).status).toBeLessThan(300)
    const gone = await agentWith({ NPM_TOKEN: {} })
    expect(outcomeOf(await wake(gone.agentId))).toBe(unbrokerable)
    await server.ok(`/secrets/${gone.ids['NPM_TOKEN']}`, { method: 'DELETE' })
    expect((await wake(gone.agentId)).status).toBeLessThan(300)
  })

  test('also refuses to retry, and a task that nobody waits for tells the sentence', async () => {
    const { agentId } = await agentWith({})
    const runId = await runOf(agentId)
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    const body = { name: server.world.uuid(), envVarName: 'NPM_TOKEN', value: 'a-value', agentId }
    await server.ok('/secrets', { body, headers: keyed() })
    expect(outcomeOf(await server.call(`/runs/${runId}/retry`, { body: {} }))).toBe(unbrokerable)
    await server.ok('/tasks', { body: { title: 'Do it', assignee: agentId }, headers: keyed() })
    const answerOf = async () => (await server.database.root('wakes').where({ agent_id: agentId }).first()) as Waked
    await waitFor(async () => (await answerOf())?.state === 'done', 'the wake is answered')
    expect(JSON.parse((await answerOf()).answer)).toMatchObject({
      kind: 'not_dispatched',
      reason: 'route_gate_declined',
      message: expect.stringContaining('--broker-hosts'),
    })
  })

  test('of many names three', async () => {
    const names = ['A_TOKEN', 'B_TOKEN', 'C_TOKEN', 'D_TOKEN', 'E_TOKEN']
    const { agentId } = await agentWith(Object.fromEntries(names.map((name) => [name, {}])))
    expect((await wake(agentId)).body.error.message).toContain('(C_TOKEN) and 2 more')
  })
})

test('a colleague gives no secret of another another way', async () => {
  const { ids } = await agentWith({ NPM_TOKEN: {} })
  const call = { method: 'PATCH', body: { brokerHosts: ['evil.test'] }, token: member.token }
  expect(outcomeOf(await server.call(`/secrets/${ids['NPM_TOKEN']}`, call))).toBe('403 http_exception')
})
