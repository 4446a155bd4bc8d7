import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outcomeOf, type TestServer, type Reply } from '../../kit/server.ts'
import { startWithAgent, type WakingAgent } from './automations-kit.ts'

// Automations over HTTP (document 2, "Automation" and "Endpoints > Automations"), but their fires.

let server: TestServer, agent: WakingAgent
beforeAll(async () => {
  ;({ server, agent } = await startWithAgent())
})
afterAll(() => server.stop())

const schedule = { type: 'schedule', cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' }
const bodyOf = (changes: Record<string, unknown> = {}) => ({
  name: 'Nightly',
  trigger: schedule,
  agentId: agent.id,
  prompt: 'Update the dependencies.',
  ...changes,
})
const create = (changes: Record<string, unknown> = {}, token?: string) =>
  server.ok('/automations', { body: bodyOf(changes), ...(token === undefined ? {} : { token }) })
const post = (path: string, body: Record<string, unknown> = {}) => server.call(`/automations/${path}`, { body })
const fieldsOf = (reply: Reply) => (reply.body.error.details?.fields ?? []).map((field: { path: string }) => field.path)

describe('POST /automations', () => {
  it('creates an active automation with all its fields', async () => {
    const reply = await server.call('/automations', { body: bodyOf() })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      object: 'automation',
      id: expect.stringMatching(/^aut_[0-9A-Za-z]{16}$/),
      workspaceId: server.owner.workspaceId,
      projectId: null,
      name: 'Nightly',
      description: null,
      status: 'active',
      trigger: schedule,
      prompt: 'Update the dependencies.',
      workflow: null,
      agentId: agent.id,
      modelId: null,
      environment: null,
      concurrencyPolicy: 'skip_if_running',
      createdBy: { type: 'user', id: server.owner.userId },
      lastRun: null,
      nextRunAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT0[78]:00:00.000Z$/),
      archivedAt: null,
      createdAt: expect.any(String),
      updatedAt: reply.body.createdAt,
    })
    expect((await server.ok(`/automations/${reply.body.id}`)).id).toBe(reply.body.id)
    expect((await post(`${reply.body.id}/pause`)).body.nextRunAt).toBe(null)
    expect((await post(`${reply.body.id}/resume`)).body.nextRunAt).toBe(reply.body.nextRunAt)
    expect((await create({ name: 'Called', trigger: { type: 'webhook' } })).nextRunAt).toBe(null)
  })

  it('takes what is optional, any reference of an agent, and knows the type from the other keys', async () => {
    const optional = {
      description: '# Why',
      modelId: 'claude-opus-4-5',
      environment: 'device',
      concurrencyPolicy: 'allow_concurrent',
    }
    const made = await create({ ...optional, agentId: agent.handle, trigger: { cron: '*/5  * * * *' } })
    expect(made).toMatchObject({ ...optional, agentId: agent.id })
    expect(made.trigger).toEqual({ type: 'schedule', cron: '*/5  * * * *', timezone: 'UTC' })
    // Unknown keys of a create are ignored.
    expect((await create({ colour: 'red' })).colour).toBeUndefined()
  })

  it('shows the secret URL of a webhook here only', async () => {
    const made = await create({ trigger: { type: 'webhook' } })
    expect(made).toMatchObject({ trigger: { type: 'webhook' }, concurrencyPolicy: 'allow_concurrent' })
    expect(made.webhookUrl).toMatch(new RegExp(`^${server.url}/api/v1/automation-hooks/[0-9A-Za-z]{43}$`))
    expect(await server.ok(`/automations/${made.id}`)).not.toHaveProperty('webhookUrl')
    const listed = await server.ok('/automations')
    expect(listed.data.every((each: object) => !('webhookUrl' in each))).toBe(true)
    const token = made.webhookUrl.split('/').at(-1)
    const kept = await server.database.root('automations').where({ id: made.id }).first()
    expect(JSON.stringify(kept)).not.toContain(token)
  })

  it('keeps the secret URL readable nowhere, though a repeated request is told it again', async () => {
    const made = await create({ trigger: { type: 'webhook' } })
    const plain = await create()
    for (const [path, body] of [
      ['', bodyOf({ trigger: { type: 'webhook' } })],
      [`/${made.id}/rotate`, {}],
      [`/${plain.id}`, { trigger: { type: 'webhook' } }],
    ] as const) {
      const send = () =>
        server.call(`/automations${path}`, { body, headers: { 'Idempotency-Key': `secret-${path}-${plain.id}` } })
      const [first, second] = [await send(), await send()]
      expect(second.headers.get('idempotency-replayed')).toBe('true')
      expect(second.body).toEqual(first.body)
      const token = first.body.webhookUrl.split('/').at(-1)
      for (const table of ['idempotency', 'outbox', 'automations'])
        expect([table, JSON.stringify(await server.database.root(table)).includes(token)]).toEqual([table, false])
    }
  })

  it.each([
    [{ trigger: { type: 'schedule' } }, ['trigger.cron']],
    [{ trigger: { cron: '61 * * * *' } }, ['trigger.cron']],
    [{ trigger: { cron: '* * * * * *' } }, ['trigger.cron']],
    [{ trigger: { cron: '@daily' } }, ['trigger.cron']],
    [{ trigger: { cron: '0 0 30 2 *' } }, ['trigger.cron']],
    [{ trigger: { cron: '0 0 * * *', timezone: 'Mars/Olympus' } }, ['trigger.timezone']],
    [{ trigger: { cron: '0 0 * * *', repo: 'a/b' } }, ['trigger.repo']],
    [{ trigger: { type: 'webhook', cron: '0 0 * * *' } }, ['trigger.cron']],
    [{ trigger: { type: 'github', event: 'pull_request.merged' } }, ['trigger.repo']],
    [{ trigger: { type: 'github', repo: 'a/b' } }, ['trigger.event']],
    [{ trigger: { event: 'push', repo: 'a/b' } }, ['trigger.event']],
    [{ trigger: { event: 'pull_request.merged', repo: 'a/b/c' } }, ['trigger.repo']],
    [{ trigger: {} }, ['trigger.type']],
    [{ trigger: { type: 'email' } }, ['trigger.type']],
    [{ name: ' ' }, ['name']],
    [{ prompt: '' }, ['prompt']],
    [{ workflow: 'Upper-Case' }, ['workflow']],
    [{ workflow: 'x'.repeat(65) }, ['workflow']],
    [{ environment: 'moon' }, ['environment']],
    [{ concurrencyPolicy: 'queue' }, ['concurrencyPolicy']],
  ])('refuses %j', async (changes, fields) => {
    const reply = await server.call('/automations', { body: bodyOf(changes) })
    expect([outcomeOf(reply), fieldsOf(reply)]).toEqual(['400 validation_error', fields])
  })

  it('refuses what lacks name, trigger, agent or prompt', async () => {
    for (const key of ['name', 'trigger', 'agentId', 'prompt'])
      expect(outcomeOf(await server.call('/automations', { body: bodyOf({ [key]: undefined }) }))).toBe(
        '400 validation_error',
      )
  })

  it('answers agent_not_found, github_not_installed and workflow_needs_github_trigger', async () => {
    const outcome = async (changes: Record<string, unknown>) =>
      outcomeOf(await server.call('/automations', { body: bodyOf(changes) }))
    expect(await outcome({ agentId: 'agt_0000000000000000' })).toBe('404 agent_not_found')
    expect(await outcome({ agentId: 'me' })).toBe('404 agent_not_found')
    const gone = await server.createAgent()
    await server.ok(`/agents/${gone.id}`, { method: 'DELETE' })
    expect(await outcome({ agentId: gone.id })).toBe('404 agent_not_found')
    expect(await outcome({ trigger: { event: 'pull_request.merged', repo: 'a/b' } })).toBe('400 github_not_installed')
    expect(await outcome({ workflow: 'review' })).toBe('400 workflow_needs_github_trigger')
    expect(await outcome({ workflow: 'review', trigger: { type: 'webhook' } })).toBe(
      '400 workflow_needs_github_trigger',
    )
  })

  it('is for agents too, which may name themselves', async () => {
    const token = await server.runToken(await server.startRun(agent.id))
    const made = await create({ agentId: 'me' }, token)
    expect(made).toMatchObject({ agentId: agent.id, createdBy: { type: 'agent', id: agent.id } })
  })
})

describe('GET /automations', () => {
  it('filters, searches and pages newest first', async () => {
    const other = await server.createAgent()
    const made: string[] = []
    for (const name of ['Alpha find', 'Beta', 'Gamma find'])
      made.unshift((await create({ name, agentId: other.id })).id)
    await post(`${made[1]}/pause`)
    const ids = async (query: string) =>
      (await server.ok(`/automations?${query}`)).data.map(({ id }: { id: string }) => id)
    expect(await ids(`agentId=${other.id}`)).toEqual(made)
    expect(await ids(`agentId=${other.handle}&status=paused`)).toEqual([made[1]])
    expect(await ids(`agentId=${other.id}&status=paused,archived`)).toEqual([made[1]])
    expect(await ids(`agentId=${other.id}&q=FIND`)).toEqual([made[0], made[2]])
    expect(await ids('agentId=@nobody')).toEqual([])
    const first = await server.ok(`/automations?agentId=${other.id}&limit=2`)
    expect([first.hasMore, first.cursor]).toEqual([true, first.nextCursor])
    const second = await server.ok(`/automations?agentId=${other.id}&limit=2&cursor=${first.cursor}`)
    expect(second).toMatchObject({ hasMore: false, nextCursor: null, data: [{ id: made[2] }] })
  })

  it('refuses limits, cursors and texts beyond its own', async () => {
    for (const query of ['limit=0', 'limit=101', `q=${'x'.repeat(101)}`, 'status=gone'])
      expect(outcomeOf(await server.call(`/automations?${query}`))).toBe('400 validation_error')
    expect(outcomeOf(await server.call('/automations?cursor=junk'))).toBe('400 invalid_cursor')
    for (const path of ['runs?cursor=junk', `${(await create()).id}/skips?cursor=junk`])
      expect(outcomeOf(await server.call(`/automations/${path}`))).toBe('400 invalid_cursor')
  })

  it('hides automations of agents that the caller does not see', async () => {
    const hidden = await server.createAgent({ visibility: 'private' })
    const made = await create({ agentId: hidden.id })
    const member = await server.addPerson('member')
    const admin = await server.addPerson('admin')
    expect((await server.call(`/automations/${made.id}`, { token: admin.token })).status).toBe(200)
    for (const path of [made.id, `${made.id}/runs`, `${made.id}/skips`])
      expect(outcomeOf(await server.call(`/automations/${path}`, { token: member.token }))).toBe(
        '404 automation_not_found',
      )
    const listed = await server.ok('/automations?limit=100', { token: member.token })
    expect(listed.data.map(({ id }: { id: string }) => id)).not.toContain(made.id)
    for (const [path, body] of [
      ['', { name: 'x' }],
      ['/pause', {}],
      ['/rotate', {}],
      ['/run', {}],
    ] as const)
      expect(outcomeOf(await server.call(`/automations/${made.id}${path}`, { body, token: member.token }))).toBe(
        '404 automation_not_found',
      )
  })
})

describe('POST /automations/:id', () => {
  it('changes what is sent and leaves the rest', async () => {
    const made = await create({ description: 'd', modelId: 'm' })
    const changed = (await post(made.id, { name: 'Renamed', modelId: null })).body
    expect(changed).toEqual({ ...made, name: 'Renamed', modelId: null, updatedAt: expect.any(String) })
    const other = await server.createAgent()
    expect((await post(made.id, { agentId: other.handle })).body.agentId).toBe(other.id)
    expect((await post(made.id, {})).status).toBe(200)
  })

  it('moves to any status', async () => {
    const { id } = await create()
    for (const status of ['archived', 'paused', 'active', 'archived'] as const) {
      const { body } = await post(id, { status })
      expect([body.status, body.archivedAt !== null]).toEqual([status, status === 'archived'])
    }
  })

  it('replaces a trigger whole, and shows a URL when it becomes a webhook', async () => {
    const { id } = await create()
    expect((await post(id, { trigger: { cron: '5 5 * * *' } })).body.trigger).toEqual({
      type: 'schedule',
      cron: '5 5 * * *',
      timezone: 'UTC',
    })
    const switched = (await post(id, { trigger: { type: 'webhook' } })).body
    expect(switched.webhookUrl).toContain('/automation-hooks/')
    const again = (await post(id, { trigger: { type: 'webhook' }, name: 'Same' })).body
    expect(again).not.toHaveProperty('webhookUrl')
    const fired = await fetch(switched.webhookUrl, { method: 'POST', body: 'x' })
    expect(fired.status).toBe(202)
    await post(id, { trigger: schedule })
    expect((await fetch(switched.webhookUrl, { method: 'POST', body: 'y' })).status).toBe(404)
  })

  it('refuses unknown keys, bad values, unknown agents, github without a connection, a workflow without github', async () => {
    const { id } = await create()
    const outcome = async (body: Record<string, unknown>) => outcomeOf(await post(id, body))
    const unknown = await post(id, { name: 'x', colour: 'red' })
    expect([outcomeOf(unknown), fieldsOf(unknown)]).toEqual(['400 validation_error', ['colour']])
    expect(await outcome({ projectId: null })).toBe('400 validation_error')
    expect(await outcome({ status: 'gone' })).toBe('400 validation_error')
    expect(await outcome({ trigger: { cron: '99 * * * *' } })).toBe('400 validation_error')
    expect(await outcome({ agentId: '@nobody' })).toBe('404 agent_not_found')
    expect(await outcome({ trigger: { event: 'pull_request.merged', repo: 'a/b' } })).toBe('400 github_not_installed')
    expect(await outcome({ workflow: 'review' })).toBe('400 workflow_needs_github_trigger')
    expect(outcomeOf(await post('aut_0000000000000000', {}))).toBe('404 automation_not_found')
    expect(outcomeOf(await post('nonsense', {}))).toBe('400 invalid_id_format')
    expect(outcomeOf(await server.call(`/automations/${id}`, { method: 'PATCH', body: {} }))).toBe(
      '404 route_not_found',
    )
  })
})

describe('moves of the status', () => {
  const moves: Record<string, Record<string, string>> = {
    active: { pause: 'paused', resume: 'active', archive: 'archived', unarchive: 'active' },
    paused: { pause: 'paused', resume: 'active', archive: 'archived', unarchive: 'refused' },
    archived: { pause: 'refused', resume: 'active', archive: 'archived', unarchive: 'active' },
  }
  it.each(Object.keys(moves))('from %s', async (from) => {
    for (const [move, to] of Object.entries(moves[from]!)) {
      const { id } = await create()
      await post(id, { status: from })
      const reply = await post(`${id}/${move}`)
      if (to !== 'refused') {
        expect([move, reply.status, reply.body.status]).toEqual([move, 200, to])
        expect(reply.body.archivedAt !== null).toBe(to === 'archived')
      } else {
        expect([move, outcomeOf(reply)]).toEqual([move, '422 invalid_status_transition'])
        expect(reply.body.error.allowedValues).toEqual(from === 'archived' ? ['active'] : ['active', 'archived'])
        expect((await server.ok(`/automations/${id}`)).status).toBe(from)
      }
    }
  })

  it('of an unknown automation are not found', async () => {
    for (const move of ['pause', 'resume', 'archive', 'unarchive', 'rotate', 'run'])
      expect(outcomeOf(await post(`aut_0000000000000000/${move}`))).toBe('404 automation_not_found')
    for (const list of ['runs', 'skips', ''])
      expect(outcomeOf(await server.call(`/automations/aut_0000000000000000/${list}`.replace(/\/$/, '')))).toBe(
        '404 automation_not_found',
      )
  })
})

describe('POST /automations/:id/rotate', () => {
  it('makes a new URL and stops the old one at once', async () => {
    const made = await create({ trigger: { type: 'webhook' } })
    const rotated = (await post(`${made.id}/rotate`)).body
    expect(rotated.webhookUrl).not.toBe(made.webhookUrl)
    expect((await fetch(made.webhookUrl, { method: 'POST' })).status).toBe(404)
    expect((await fetch(rotated.webhookUrl, { method: 'POST' })).status).toBe(202)
  })

  it('is for webhooks only', async () => {
    expect(outcomeOf(await post(`${(await create()).id}/rotate`))).toBe('400 not_a_webhook_trigger')
  })
})
