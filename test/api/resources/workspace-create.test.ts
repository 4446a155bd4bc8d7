import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHash } from 'node:crypto'
import { addUser, createToken } from '../../../control-plane/operator/people.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { workspaceCalls } from './workspaces-kit.ts'

// Tests how workspaces are made, and by what names and whom they are reached.

let server: TestServer, agentToken: string
beforeAll(async () => {
  server = await TestServer.start()
  agentToken = (await server.agentCaller()).token
})
afterAll(() => server.stop())

const { home, slugOf, patch } = workspaceCalls(() => server)

describe('create', () => {
  test('returns the workspace, its company and the caller’s place as owner', async () => {
    const person = await server.addPerson('member')
    const reply = await server.call('/workspaces', {
      token: person.token,
      body: {
        name: ' Acme Works ',
        slug: 'acme-works',
        description: 'd',
        defaultMaxTurns: 9,
        oomResume: true,
        extra: 1,
      },
    })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Acme Works',
      slug: 'acme-works',
      description: 'd',
      status: 'active',
      issuePrefix: 'ACM',
      issueCounter: 0,
      contextMd: null,
      defaultModel: null,
      defaultReasoningEffort: null,
      defaultMaxTurns: 9,
      backupModel: null,
      mcpServers: null,
      agentsPaused: false,
      idleCompaction: { enabled: false, afterMinutes: 55, minTokens: 100_000 },
      sandboxSize: null,
      monthlyBudgetCents: null,
      oomResume: true,
      sandboxEgress: [],
      cloudEnabled: true,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const own = (await server.ok('/user/workspaces', { token: person.token })).data
    expect(own).toHaveLength(2)
    expect(own[1]).toMatchObject({ id: reply.body.id, role: 'owner', companyName: 'Acme Works' })
    expect(own[1].companyId).not.toBe(own[0].companyId)
    // The caller's token stays in its workspace; one of the new workspace reads the same.
    const { token } = await server.database.root.transaction((tx) =>
      createToken(tx, server.world, { email: person.email, workspace: 'acme-works', name: null }),
    )
    expect(await server.ok('/workspaces', { token })).toEqual(reply.body)
  })

  test('makes the slug from the name, numbered when it is taken', async () => {
    const slug = async (name: string) => (await server.ok('/companies', { body: { name } })).slug as string
    expect(await slug('Übung & Söhne')).toBe('ubung-sohne')
    expect(await slug('Ubung Sohne')).toBe('ubung-sohne-2')
    expect(await slug('42 Things')).toBe('things')
    expect(await slug('x'.repeat(100))).toBe('x'.repeat(60))
    expect(outcomeOf(await server.call('/workspaces', { body: { name: '测试' } }))).toBe('400 validation_error')
    expect(
      (await server.ok('/workspaces', { body: { name: '测试', slug: 'ceshi', issuePrefix: 'CS' } })).issuePrefix,
    ).toBe('CS')
  })

  test('a slug that exists is refused with a plain sentence', async () => {
    const reply = await server.call('/workspaces', { body: { name: 'Copy', slug: 'main' } })
    expect([reply.status, reply.body]).toEqual([409, { error: expect.any(String) }])
    const body = { name: 'Race', slug: 'raced' }
    const replies = await Promise.all(Array.from({ length: 4 }, () => server.call('/workspaces', { body })))
    expect(replies.map(({ status }) => String(status)).toSorted()).toEqual(['201', '409', '409', '409'])
  })

  test('is for people, and refuses what does not fit', async () => {
    expect(outcomeOf(await server.call('/workspaces', { body: { name: 'x' }, token: agentToken }))).toBe(
      '403 http_exception',
    )
    for (const body of [
      {},
      { name: '' },
      { name: 'x'.repeat(101) },
      { name: 'ok', slug: 'a' },
      { name: 'ok', slug: 'x'.repeat(64) },
      { name: 'ok', slug: 'Upper' },
      { name: 'ok', slug: '1digit' },
      { name: 'ok', slug: 'under_score' },
      { name: 'ok', idleCompaction: { afterMinutes: 60 } },
    ])
      expect([body, outcomeOf(await server.call('/workspaces', { body }))]).toEqual([body, '400 validation_error'])
  })
})

describe('read', () => {
  test('by its UUID under each name, by every member and its agents', async () => {
    const workspace = await server.ok('/workspaces')
    const member = await server.addPerson('member')
    for (const path of ['/workspaces/ID', '/companies/ID', '/workspaces/ID/settings', '/companies/ID/settings'])
      for (const token of [server.owner.token, member.token, agentToken])
        expect(await server.ok(path.replace('ID', workspace.id), { token })).toEqual(workspace)
    expect((await server.call(`/workspaces/${workspace.id.toUpperCase()}`)).status).toBe(200)
    expect(outcomeOf(await server.call('/workspaces/main'))).toBe('400 invalid_id_format')
  })

  test('another workspace is refused, whether it exists, and whether the person belongs to it or not', async () => {
    const person = await home()
    const { root } = server.database
    await root.transaction((tx) =>
      addUser(tx, server.world, { name: 'x', email: person.email, role: 'admin', workspace: 'main' }),
    )
    for (const id of [server.owner.workspaceId, '00000000-0000-4000-8000-00000000000a'])
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', {}],
        ['DELETE', '', { confirmName: 'Main' }],
        ['PATCH', '/company', { name: 'x' }],
        ['POST', '/pause-agents'],
        ['POST', '/resume-agents'],
        ['POST', '/archive'],
        ['POST', '/export'],
        ['GET', '/company-config'],
        ['PATCH', '/company-config', {}],
        ['GET', '/members'],
        ['POST', '/leave'],
        ['POST', '/invites', {}],
        ['POST', '/members', {}],
        ['PATCH', `/members/${person.userId}`, {}],
        ['DELETE', `/members/${person.userId}`],
      ] as const) {
        const reply = await server.call(`/workspaces/${id}${path}`, { method, body, token: person.token })
        expect([method, path, outcomeOf(reply)]).toEqual([method, path, '403 not_permitted'])
      }
  })

  test('a dashboard session picks its workspace by the header', async () => {
    const person = await home()
    // The workspace that was joined first is the default.
    server.world.advance(1)
    const { root } = server.database
    await root.transaction((tx) =>
      addUser(tx, server.world, { name: 'x', email: person.email, role: 'member', workspace: 'main' }),
    )
    const cookie = crypto.randomUUID()
    const now = server.world.now()
    await root('dashboard_sessions').insert({
      id: crypto.randomUUID(),
      user_id: person.uuid,
      token_hash: createHash('sha256').update(cookie).digest('hex'),
      created_at: now,
      expires_at: now + 60_000,
    })
    const call = (path: string, workspace?: string) =>
      server.call(path, {
        token: null,
        headers: {
          cookie: `svc_session=${cookie}`,
          ...(workspace === undefined ? {} : { 'Svc-Workspace-Id': workspace }),
        },
      })
    const main = server.owner.workspaceId
    expect(outcomeOf(await call(`/workspaces/${main}`))).toBe('403 not_permitted')
    expect((await call(`/workspaces/${main}`, main)).body.slug).toBe('main')
    // Which workspace a slug is of can be asked before one is picked.
    expect((await call('/workspaces/by-slug/main')).body.id).toBe(main)
    expect(outcomeOf(await call(`/workspaces/by-slug/${await slugOf(await home())}`))).toBe('404 resource_not_found')
  })
})

describe('slugs', () => {
  test('lead to their workspace, old ones by 308 under the name that was called', async () => {
    const person = await home()
    const old = await slugOf(person)
    const { id } = (await patch(person, { slug: 'moved-on' })).body
    const call = (path: string) => server.call(path, { token: person.token })
    expect((await call('/workspaces/by-slug/moved-on')).body.id).toBe(id)
    for (const prefix of ['workspaces', 'companies']) {
      const reply = await call(`/${prefix}/by-slug/${old}`)
      expect(reply.status).toBe(308)
      expect(reply.headers.get('location')).toBe(`/api/v1/${prefix}/by-slug/moved-on`)
      expect(reply.body).toEqual({ slug: 'moved-on' })
    }
    for (const slug of ['nobodys', 'No%20Slug', 'main'])
      expect(outcomeOf(await call(`/workspaces/by-slug/${slug}`))).toBe('404 resource_not_found')
    expect(outcomeOf(await server.call(`/workspaces/by-slug/${old}`))).toBe('404 resource_not_found')
    expect((await server.call('/workspaces/by-slug/main', { token: agentToken })).status).toBe(200)
  })

  test('a login token is refused the slug of another workspace of its person', async () => {
    const person = await home()
    const { root } = server.database
    await root.transaction((tx) =>
      addUser(tx, server.world, { name: 'x', email: person.email, role: 'admin', workspace: 'main' }),
    )
    expect(outcomeOf(await server.call('/workspaces/by-slug/main', { token: person.token }))).toBe('403 not_permitted')
  })

  test('are taken while in use and after they were renamed away, but by the one that had them', async () => {
    const [first, second] = [await home(), await home()]
    const old = await slugOf(first)
    expect(outcomeOf(await patch(second, { slug: old }))).toBe('409 slug_taken')
    await patch(first, { slug: 'renamed-away' })
    const refused = await patch(second, { slug: old, name: 'Must not change' })
    expect(outcomeOf(refused)).toBe('409 slug_taken')
    expect(refused.body.error.param).toBe('slug')
    expect((await server.ok('/workspaces', { token: second.token })).name).not.toBe('Must not change')
    expect((await server.call('/workspaces', { body: { name: 'x', slug: old } })).status).toBe(409)
    expect((await patch(first, { slug: old })).body.slug).toBe(old)
    expect((await patch(first, { slug: old })).status).toBe(200)
  })
})
