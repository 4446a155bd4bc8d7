import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createVault } from '../../../control-plane/vault/vault.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

const settings = { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') }
let server: TestServer
let admin: Person
let member: Person
let other: Person
beforeAll(async () => {
  server = await TestServer.start({ settings })
  admin = await server.addPerson('admin')
  member = await server.addPerson('member')
  other = await server.addPerson('member')
})
afterAll(() => server.stop())

const named = () => `secret-${crypto.randomUUID()}`
const create = (body: Record<string, unknown> = {}, token = member.token) =>
  server.call('/secrets', { body: { name: named(), value: 'v4lue', ...body }, token })

async function agentToken(): Promise<string> {
  const agent = await server.createAgent()
  return server.runToken(await server.startRun(agent.id))
}

describe('storing', () => {
  test('returns everything but the value', async () => {
    const name = named()
    const value = `value ${crypto.randomUUID()}`
    const reply = await create({ name, value, provider: 'github', envVarName: 'GH_TOKEN' })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      object: 'secret',
      id: expect.stringMatching(/^sec_\w{16}$/),
      workspaceId: member.workspaceId,
      name,
      provider: 'github',
      envVarName: 'GH_TOKEN',
      grantedTo: [],
      createdBy: { type: 'user', id: member.userId },
      brokerHosts: [],
      cloudPlain: false,
      lastRevealedBy: null,
      lastRevealedAt: null,
      createdAt: expect.any(String),
    })
    expect((await server.ok('/secrets', { token: other.token })).data[0]).toEqual(reply.body)
    const rows = (await server.database.root('secrets').where({ name })) as { sealed: Uint8Array }[]
    expect(Buffer.from(rows[0]!.sealed).includes(value)).toBe(false)
  })

  test('needs a free name and sensible values; the variable is made from the name', async () => {
    const name = named()
    expect(outcomeOf(await create({ name }))).toBe('201')
    expect(outcomeOf(await create({ name }))).toBe('409 secret.duplicate_name')
    for (const body of [
      { name: '' },
      { value: '' },
      { value: 'x'.repeat(10_001) },
      { envVarName: '1A' },
      { envVarName: 'A-B' },
      { envVarName: 'LD_PRELOAD' },
      { envVarName: 'NODE_OPTIONS' },
    ])
      expect([body, outcomeOf(await create(body))]).toEqual([body, '400 validation_error'])
    expect(outcomeOf(await create({ agentId: '@nobody' }))).toBe('404 agent_not_found')
    const variable = async (text: string) => (await create({ name: text })).body.envVarName
    expect(await variable('Deploy key (prod)')).toBe('DEPLOY_KEY_PROD')
    expect(await variable('path')).toBe('SECRET_PATH')
    expect(await variable('2fa')).toBe('SECRET_2FA')
    expect(await variable('鍵')).toBe('SECRET_VALUE')
  })

  test('two at once with one name make one secret', async () => {
    const name = named()
    const replies = await Promise.all([create({ name }), create({ name }), create({ name })])
    expect(replies.map(outcomeOf).toSorted()).toEqual(['201', '409 secret.duplicate_name', '409 secret.duplicate_name'])
  })

  test('is for people of the workspace; a list pages', async () => {
    const { id } = (await create()).body
    const token = await agentToken()
    for (const [method, path, body] of [
      ['GET', '/secrets', undefined],
      ['POST', '/secrets', { name: 'x', value: 'y' }],
      ['POST', `/secrets/${id}/reveal`, undefined],
      ['POST', `/secrets/${id}/grants`, { agentId: 'me' }],
      ['DELETE', `/secrets/${id}/grants/me`, undefined],
      ['DELETE', `/secrets/${id}`, undefined],
    ] as const)
      expect(outcomeOf(await server.call(path, { method, token, ...(body && { body }) }))).toBe('403 http_exception')
    const stranger = await server.addPerson('owner', 'elsewhere')
    expect((await server.ok('/secrets', { token: stranger.token })).data).toEqual([])
    const reveal = { method: 'POST', token: stranger.token }
    expect(outcomeOf(await server.call(`/secrets/${id}/reveal`, reveal))).toBe('404 secret_not_found')
    const first = await server.ok('/secrets?limit=1')
    expect(first).toMatchObject({ data: [{ id }], hasMore: true })
    const second = await server.ok(`/secrets?limit=1&after=${first.nextCursor}`)
    expect(second.data[0].id).not.toBe(id)
    expect(outcomeOf(await server.call('/secrets?after=x'))).toBe('400 invalid_cursor')
  })
})

describe('how cloud sandboxes get a secret', () => {
  const value = 'a-value-of-a-token'
  const update = (id: string, body: object, token = member.token) =>
    server.call(`/secrets/${id}`, { method: 'PATCH', body, token })

  test('its hosts are named by who stored it and by admins, and what enters as it is by admins alone', async () => {
    const { body: made } = await create({ value, brokerHosts: ['API.example.com', 'api.example.com', 'b.test:443'] })
    expect(made).toMatchObject({ brokerHosts: ['api.example.com', 'b.test'], cloudPlain: false })
    const hosts = { brokerHosts: ['files.example.com:8443'] }
    expect(outcomeOf(await update(made.id, hosts, other.token))).toBe('403 http_exception')
    expect((await update(made.id, hosts)).body).toEqual({ ...made, ...hosts })
    expect((await update(made.id, {})).body).toEqual({ ...made, ...hosts })
    for (const cloudPlain of [true, false])
      expect(outcomeOf(await update(made.id, { cloudPlain }))).toBe('403 http_exception')
    expect((await update(made.id, { cloudPlain: true }, admin.token)).body).toEqual({
      ...made,
      ...hosts,
      cloudPlain: true,
    })
    expect((await update(made.id, { brokerHosts: null }, admin.token)).body).toMatchObject({ brokerHosts: [] })
    expect((await server.ok('/secrets')).data.find(({ id }: { id: string }) => id === made.id)).toMatchObject({
      brokerHosts: [],
      cloudPlain: true,
    })
    expect(outcomeOf(await create({ value, cloudPlain: true }))).toBe('403 http_exception')
    expect((await create({ value, cloudPlain: true }, admin.token)).body.cloudPlain).toBe(true)
    const stranger = await server.addPerson('owner', 'stranger-of-hosts')
    expect(outcomeOf(await update(made.id, hosts, stranger.token))).toBe('404 secret_not_found')
    expect(outcomeOf(await update(made.id, hosts, await agentToken()))).toBe('403 http_exception')
    expect(outcomeOf(await update('sec_0000000000000000', hosts))).toBe('404 secret_not_found')
  })

  test.each([
    ['*.example.com'],
    ['https://example.com'],
    ['example.com/x'],
    ['example.com:0'],
    ['example.com:65536'],
    ['example.com:'],
    ['a@example.com'],
    ['-x'],
    [''],
    ['a b'],
    ['[::1]'],
  ])('%j is no host', async (host) => {
    const { id } = (await create({ value })).body
    expect(outcomeOf(await update(id, { brokerHosts: [host] }))).toBe('400 validation_error')
    expect(outcomeOf(await create({ value, brokerHosts: [host] }))).toBe('400 validation_error')
  })

  test('takes twenty hosts, nothing else, and values that fit into a header', async () => {
    const { id } = (await create({ value })).body
    const many = (count: number) => ({ brokerHosts: Array.from({ length: count }, (_, n) => `h${n}.test`) })
    expect(outcomeOf(await update(id, many(20)))).toBe('200')
    for (const body of [many(21), { cloudPlain: null }, { value: 'new' }, { name: 'x' }])
      expect([body, outcomeOf(await update(id, body, admin.token))]).toEqual([body, '400 validation_error'])
    for (const wrong of ['short', 'two\nlines-of-it', 'ümlaut-of-it', 'x'.repeat(4_097)]) {
      const hosts = { brokerHosts: ['api.example.com'] }
      expect([wrong, outcomeOf(await create({ value: wrong, ...hosts }))]).toEqual([wrong, '400 validation_error'])
      const stored = (await create({ value: wrong })).body
      const reply = await update(stored.id, hosts)
      expect([outcomeOf(reply), JSON.stringify(reply.body).includes(wrong)]).toEqual(['400 validation_error', false])
      expect(outcomeOf(await update(stored.id, { brokerHosts: [] }))).toBe('200')
    }
  })

  test('two changes at once keep what each changed', async () => {
    const { id } = (await create({ value }, admin.token)).body
    const hosts = { brokerHosts: ['api.example.com'] }
    await Promise.all([update(id, hosts, admin.token), update(id, { cloudPlain: true }, admin.token)])
    expect((await update(id, {}, admin.token)).body).toMatchObject({ ...hosts, cloudPlain: true })
  })
})

describe('revealing', () => {
  test('is for admins, shows the value, and is recorded', async () => {
    const { id, name } = (await create({ value: 'über 🔑\nline two' })).body
    const reveal = (token: string) => server.call(`/secrets/${id}/reveal`, { method: 'POST', token })
    expect(outcomeOf(await reveal(member.token))).toBe('403 http_exception')
    expect((await reveal(admin.token)).body).toEqual({ object: 'secret_value', id, name, value: 'über 🔑\nline two' })
    const listed = (await server.ok('/secrets')).data.find((row: { id: string }) => row.id === id)
    expect(listed).toMatchObject({
      lastRevealedBy: { type: 'user', id: admin.userId },
      lastRevealedAt: expect.any(String),
    })
    const missing = { method: 'POST' }
    expect(outcomeOf(await server.call('/secrets/sec_0000000000000000/reveal', missing))).toBe('404 secret_not_found')
  })

  test('a value that was put under another secret is not opened', async () => {
    const [one, two] = [(await create()).body, (await create()).body]
    const { root } = server.database
    const { sealed } = await root('secrets').where({ id: one.id }).first('sealed')
    await root('secrets').where({ id: two.id }).update({ sealed })
    const reply = await server.call(`/secrets/${two.id}/reveal`, { method: 'POST' })
    expect([reply.status, JSON.stringify(reply.body).includes('v4lue')]).toEqual([500, false])
    await root('secrets').where({ id: two.id }).delete()
  })
})

describe('granting', () => {
  test('an agent has two hundred secrets at most', async () => {
    const agent = await server.createAgent({}, member.token)
    const { id } = (await create({ agentId: agent.id })).body
    const { root } = server.database
    const [secret, grant] = [
      await root('secrets').where({ id }).first(),
      await root('secret_grants').where({ secret_id: id }).first(),
    ]
    const more = Array.from({ length: 199 }, (_, n) => `sec_full${n}`)
    await root('secrets').insert(more.map((each) => ({ ...secret, id: each, name: each })))
    await root('secret_grants').insert(more.map((each) => ({ ...grant, secret_id: each })))
    expect(outcomeOf(await create({ agentId: agent.id }))).toBe('400 validation_error')
    const body = { agentId: agent.id }
    const other = (await create()).body.id
    expect(outcomeOf(await server.call(`/secrets/${other}/grants`, { body, token: member.token }))).toBe(
      '400 validation_error',
    )
    // What it has already stays.
    expect((await server.call(`/secrets/${id}/grants`, { body, token: member.token })).status).toBe(200)
    await server.ok(`/secrets/${id}/grants/${agent.id}`, { method: 'DELETE', token: member.token })
    expect((await server.call(`/secrets/${other}/grants`, { body, token: member.token })).status).toBe(200)
    await root('secret_grants').whereIn('secret_id', more).delete()
    await root('secrets').whereIn('id', more).delete()
  })

  test('passes it to the next runs of the agent, until it is taken away', async () => {
    const person = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: person.token })
    const agent = await server.createAgent({}, person.token)
    const started = async () => {
      await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: person.token })
      const offer = await device.next('run.offer')
      device.send({ type: 'run.accepted', runId: offer.runId, fence: offer.fence })
      const { secrets, runId } = await device.next('run.start')
      const { envKeys } = await server.ok(`/runs/${runId}/manifest`, { token: person.token })
      expect(envKeys).toEqual(expect.arrayContaining(Object.keys(secrets)))
      await server.ok(`/runs/${runId}/cancel`, { body: {}, token: person.token })
      return secrets
    }
    expect(await started()).toEqual({})
    const { id } = (await create({ value: 'one', envVarName: 'ONE' }, person.token)).body
    const path = `/secrets/${id}/grants`
    const granted = await server.ok(path, { body: { agentId: agent.handle }, token: person.token })
    expect(granted.grantedTo).toEqual([{ type: 'agent', id: agent.id }])
    await server.ok(path, { body: { agentId: agent.id }, token: person.token })
    await create({ value: 'two', envVarName: 'TWO', agentId: agent.id }, person.token)
    expect(await started()).toEqual({ ONE: 'one', TWO: 'two' })
    await server.ok(`${path}/${agent.id}`, { method: 'DELETE', token: person.token })
    expect(await started()).toEqual({ TWO: 'two' })
    await device.disconnect()
  })

  test('is for who stored it and admins, to agents they see', async () => {
    const agent = await server.createAgent({}, member.token)
    const hidden = await server.createAgent({ visibility: 'private' }, other.token)
    const { id } = (await create()).body
    const grant = (agentId: string, token: string) => server.call(`/secrets/${id}/grants`, { body: { agentId }, token })
    expect(outcomeOf(await grant(agent.id, other.token))).toBe('403 http_exception')
    expect(outcomeOf(await grant(hidden.id, member.token))).toBe('404 agent_not_found')
    expect(outcomeOf(await grant(agent.id, admin.token))).toBe('200')
    for (const [method, path] of [
      ['DELETE', `/secrets/${id}/grants/${agent.id}`],
      ['DELETE', `/secrets/${id}`],
    ] as const)
      expect(outcomeOf(await server.call(path, { method, token: other.token }))).toBe('403 http_exception')
    const take = (agentId: string) =>
      server.call(`/secrets/${id}/grants/${agentId}`, { method: 'DELETE', token: member.token })
    expect(outcomeOf(await take('@nobody'))).toBe('404 agent_not_found')
    expect(outcomeOf(await take(agent.id))).toBe('204')
    expect(outcomeOf(await server.call(`/secrets/${id}`, { method: 'DELETE', token: member.token }))).toBe('204')
    expect(outcomeOf(await grant(agent.id, member.token))).toBe('404 secret_not_found')
    expect(outcomeOf(await server.call(`/secrets/${id}`, { method: 'DELETE' }))).toBe('404 secret_not_found')
  })
})

test('what an agent writes anywhere holds no value of a secret that it was given, what people write may', async () => {
  const agent = await server.createAgent({}, member.token)
  const value = `v-${crypto.randomUUID()}`
  await create({ value, envVarName: 'GIVEN', agentId: agent.id })
  const { runPublicId } = await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: member.token })
  const token = await server.runToken(runPublicId)
  const headers = () => ({ 'Idempotency-Key': crypto.randomUUID() })
  const title = `Use ${value} twice`
  const body = { title, description: JSON.stringify({ deep: value }) }
  const task = await server.ok('/tasks', { token, headers: headers(), body })
  expect(task.title).toBe('Use [redacted:GIVEN] twice')
  expect((await server.ok(`/tasks/${task.id}`)).description).toBe('{"deep":"[redacted:GIVEN]"}')
  const comment = { token, headers: headers(), body: { content: `It is ${value}.` } }
  expect((await server.ok(`/tasks/${task.id}/comments`, comment)).body).toBe('It is [redacted:GIVEN].')
  const output = { data: { list: [value, { [value]: 1 }] } }
  await server.ok('/runs/current/output', { token, body: output })
  for (const table of ['tasks', 'messages', 'run_details', 'task_activity'])
    expect(JSON.stringify(await server.database.root(table))).not.toContain(value)
  const theirs = await server.ok('/tasks', { token: member.token, headers: headers(), body: { title } })
  expect(theirs.title).toBe(title)
})

describe('the key', () => {
  test('is a file beside the database for the server alone, made with the first secret; without it no server starts', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'svc-secrets-'))
    try {
      const path = join(dir, 'secrets.key')
      const vault = createVault({ kind: 'file', path }, server.world)
      expect(vault.fingerprint()).toBeNull()
      const sealed = vault.seal('sec_1', 'value')
      expect(statSync(path).mode & 0o777).toBe(0o600)
      const again = createVault({ kind: 'file', path }, server.world)
      expect(again.open('sec_1', sealed)).toBe('value')
      expect(() => again.open('sec_2', sealed)).toThrow('another key')
      const spoiled = Buffer.from(sealed)
      spoiled[spoiled.length - 1]! ^= 1
      for (const wrong of [spoiled, sealed.subarray(0, 20), Buffer.alloc(0)])
        expect(() => again.open('sec_1', wrong)).toThrow('another key')
      expect(again.fingerprint()).toBe(vault.fingerprint())
      expect(readFileSync(path, 'utf8')).not.toContain(vault.fingerprint()!)
      writeFileSync(path, 'nonsense')
      expect(() => createVault({ kind: 'file', path }, server.world).fingerprint()).toThrow('32 bytes')
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })

  test('of another server of the same database must be the same', async () => {
    await create()
    const wrong = { SVC_SECRETS_KEY: 'cd'.repeat(32) }
    await expect(TestServer.start({ beside: server, settings: wrong })).rejects.toThrow('another key')
    const right = await TestServer.start({ beside: server, settings })
    expect((await right.ok('/secrets')).data.length).toBeGreaterThan(0)
    await right.stop()
  })
})
