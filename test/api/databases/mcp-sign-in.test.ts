import { idFrom, type ConnectionId, type PersonUuid } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadServices } from '../../../control-plane/catalog/services.ts'
import { createOutbound } from '../../../control-plane/outbound/outbound.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { useConnection } from '../../../control-plane/resources/connections/for-runs.ts'
import { Renewals } from '../../../control-plane/resources/connections/renewal.ts'
import { createVault } from '../../../control-plane/vault/vault.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { McpOauthServer } from '../../kit/mcp-oauth-server.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'
import { newPlugin } from '../facts/kit/plugins.ts'

// Signing in to MCP servers by OAuth: a real MCP server and a real provider, browsers with their cookies, and each kind of client.

const key = 'ab'.repeat(32)
const databases = ['sqlite', ...(hasPostgres() ? (['postgres'] as const) : [])] as const
const registers = { features: { registration: { enabled: true } } }

describe.each(databases)('on %s', (database) => {
  let site: McpOauthServer
  /** Registers nobody. The operator has a client there. */
  let operated: McpOauthServer
  /** Registers nobody, and nobody has a client there. */
  let closed: McpOauthServer
  let sites: McpOauthServer[]
  let server: TestServer
  let member: Person
  let file: ReturnType<typeof serviceSettings>
  let visits = 0

  beforeAll(async () => {
    sites = await Promise.all([1, 2, 3].map(() => McpOauthServer.start()))
    ;[site, operated, closed] = sites as [McpOauthServer, McpOauthServer, McpOauthServer]
    const services = [{ id: 'notes', label: 'Notes', authKind: 'mcp_oauth', surfaces: ['mcp'], mcp: { url: site.url } }]
    const clients = [{ issuer: operated.provider.url, clientId: 'svc', clientSecret: 'client-secret-of-svc' }]
    file = serviceSettings({ services, clients })
    const settings = { SVC_SECRETS_KEY: key, SVC_TRUSTED_PROXIES: '1', ...file }
    server = await TestServer.start({ database, settings })
    member = await server.addPerson('member')
    site.knows(server.url, registers)
    operated.knows(server.url)
    closed.knows(server.url)
  })
  afterAll(async () => {
    await server.stop()
    for (const one of sites) await one.stop()
  })

  const create = (integration: string, more: object = {}, { token }: Person = server.owner) =>
    server.call('/connections', {
      body: { integration, ownerType: 'company', accountLabel: crypto.randomUUID(), ...more },
      token,
    })
  /** Comes back from the provider in a browser of the person. */
  const comeBack = async (back: string, { email }: Person = server.owner) =>
    (await signedIn(server, email)).visit(back, { headers: { 'x-forwarded-for': `10.2.${visits++}.1` } })
  const approve = async ({ provider }: McpOauthServer, authorizeUrl: string, by?: Person) =>
    comeBack(await provider.visit(authorizeUrl), by)
  const newServer = async (url: string, more: object = {}, { token }: Person = server.owner) =>
    (await server.ok('/mcp-servers', { body: { name: `n${crypto.randomUUID()}`, url, ...more }, token })).id as string
  const clientsAt = ({ provider }: McpOauthServer) =>
    server.database.root('connection_clients').where({ issuer: provider.url })
  async function signIn(at: McpOauthServer, integration: string, more: object = {}, by?: Person): Promise<string> {
    const { body } = await create(integration, more, by)
    expect(body.nextStep?.kind, JSON.stringify(body)).toBe('oauth_redirect')
    const page = await approve(at, body.nextStep.authorizeUrl, by)
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connected')])
    return body.connection.id as string
  }
  const use = (connectionId: string, refused?: number, agentOwnerUserId: PersonUuid | null = null) => {
    const { world } = server
    const deps = {
      root: server.database.root,
      world,
      log: silentLog,
      vault: createVault({ kind: 'given', text: key }, world),
      services: loadServices(file.SVC_SERVICES_FILE),
      outbound: createOutbound({ allowHosts: ['127.0.0.1'], world: realWorld }),
      renewals: new Renewals(),
    }
    const run = { workspaceId: server.owner.workspaceId, agentOwnerUuid: agentOwnerUserId }
    return useConnection(deps, run, { connectionId: idFrom(connectionId), ...(refused !== undefined && { refused }) })
  }

  test('a service of the catalog is signed in to as a client that registers itself, for that server alone', async () => {
    const services = await server.ok('/connections/catalog')
    expect(services.data.find(({ id }: { id: string }) => id === 'notes')).toMatchObject({ isReady: true })
    const { body } = await create('notes')
    expect(body).toMatchObject({ status: 'human_required', nextStep: { kind: 'oauth_redirect' } })
    const url = new URL(body.nextStep.authorizeUrl)
    expect(url.searchParams.get('resource')).toBe(site.url)
    expect(url.searchParams.get('code_challenge_method')).toBe('S256')
    const { id } = body.connection
    // Nothing is kept of a client before it has worked.
    expect(await clientsAt(site)).toEqual([])
    expect((await approve(site, url.href)).status).toBe(200)
    expect(await server.ok(`/connections/${id}`)).toMatchObject({
      status: 'active',
      grantedScopes: expect.arrayContaining(['notes:read']),
      auth: { kind: 'mcp_oauth', fieldNames: ['accessToken', 'refreshToken'], expiresAt: expect.any(String) },
    })
    const [client] = await clientsAt(site)
    expect(client).toMatchObject({ source: 'registration', workspace_id: server.owner.workspaceId })
    // The next sign-in is by the same client.
    const next = await create('notes')
    expect(new URL(next.body.nextStep.authorizeUrl).searchParams.get('client_id')).toBe(client.client_id)
  })

  test('its tokens are renewed for that server, one use of each refresh token, and withdrawn in the end', async () => {
    const id = await signIn(site, 'notes')
    const first = await use(id)
    site.provider.asked.length = 0
    server.world.advance(60_000)
    const all = await Promise.all(Array.from({ length: 10 }, () => use(id)))
    expect(site.provider.asked).toEqual(['refresh_token good'])
    const [second] = all
    expect(second!.headers['authorization']).not.toBe(first.headers['authorization'])
    expect(new Set(all.map(({ headers }) => headers['authorization'])).size).toBe(1)
    for (const { headers } of [second!]) {
      const [token] = /[^ ]+$/.exec(headers['authorization']!)!
      expect(await site.provider.audienceOf(token)).toBe(site.url)
    }
    const revokes = site.provider.revoked.length
    expect((await server.call(`/connections/${id}/revoke`, { method: 'POST' })).status).toBe(204)
    expect(site.provider.revoked.length).toBe(revokes + 1)
    const [token] = /[^ ]+$/.exec(second!.headers['authorization']!)!
    expect(await site.provider.audienceOf(token)).toBeNull()
    server.world.advance(-60_000)
  })

  test('a server of an agent is signed in to by its owner, and its runs and its list of tools have the sign-in from then on', async () => {
    const agent = await server.createAgent({}, member.token)
    const id = await newServer(site.url, { agentId: agent.id }, member)
    const tools = () => server.call(`/mcp-servers/${id}/tools`, { token: member.token })
    expect(outcomeOf(await tools())).toBe('409 mcp_sign_in_needed')
    expect(outcomeOf(await create(`mcp-server:${id}`))).toBe('403 connection_owner_mismatch')
    const connectionId = await signIn(site, `mcp-server:${id}`, {}, member)
    expect(await server.ok(`/mcp-servers/${id}`, { token: member.token })).toMatchObject({ connectionId })
    expect(await server.ok(`/connections/${connectionId}`, { token: member.token })).toMatchObject({
      owner: { type: 'user', id: member.userId },
      integration: { id: `mcp-server:${id}`, authKind: 'mcp_oauth' },
      availableSurfaces: ['mcp'],
    })
    // It is the member's own.
    expect(outcomeOf(await server.call(`/connections/${connectionId}`))).toBe('404 connection_not_found')
    expect((await tools()).body.data).toMatchObject([
      { object: 'mcp_tool', name: 'say', description: 'Says hey.', annotations: { readOnlyHint: true } },
    ])
    expect(outcomeOf(await server.call(`/mcp-servers/${id}/tools`))).toBe('409 mcp_sign_in_needed')
    // Taken from its server, it is attached again.
    const token = member.token
    await server.ok(`/mcp-servers/${id}`, { method: 'PATCH', body: { connectionId: null }, token })
    const again = await create(
      `mcp-server:${id}`,
      { accountLabel: (await labelOf(connectionId, member)) as string },
      member,
    )
    expect(again.body).toMatchObject({ status: 'connected', connection: { id: connectionId } })
    expect(await server.ok(`/mcp-servers/${id}`, { token })).toMatchObject({ connectionId })
  })
  const labelOf = async (id: string, { token }: Person) =>
    (await server.ok(`/connections/${id}`, { token })).accountLabel

  test('a server of the workspace is signed in to by admins, for all', async () => {
    const id = await newServer(site.url)
    expect(outcomeOf(await create(`mcp-server:${id}`, {}, member))).toBe('403 connection_owner_mismatch')
    const connectionId = await signIn(site, `mcp-server:${id}`)
    expect(await server.ok(`/connections/${connectionId}`, { token: member.token })).toMatchObject({
      owner: { type: 'company' },
    })
    expect((await server.call(`/mcp-servers/${id}/tools`, { token: member.token })).status).toBe(200)
  })

  test('a server at another address has no sign-in, and nothing is sent there', async () => {
    for (const url of [closed.url, `${site.url}?tenant=2`, `${site.url}/deeper`]) {
      const id = await newServer(site.url)
      const connectionId = await signIn(site, `mcp-server:${id}`)
      const pending = await create(`mcp-server:${id}`)
      closed.seen.length = 0
      const moved = await server.ok(`/mcp-servers/${id}`, { method: 'PATCH', body: { url } })
      expect(moved).toMatchObject({ url, connectionId: null })
      expect(await server.ok(`/connections/${connectionId}`)).toMatchObject({
        status: 'revoked',
        statusReason: 'The MCP server has another address now.',
        auth: { fieldNames: [] },
      })
      await expect(use(connectionId)).rejects.toThrow('is revoked')
      // Who was about to sign in has signed in to nothing.
      expect((await approve(site, pending.body.nextStep.authorizeUrl)).status).toBe(400)
      expect(closed.seen).toEqual([])
      // Nor does another server, which may be anybody's, use a sign-in that is good.
      const other = await newServer(site.url)
      const elsewhere = {
        name: `n${crypto.randomUUID()}`,
        url,
        connectionId: await signIn(site, `mcp-server:${other}`),
      }
      expect(outcomeOf(await server.call('/mcp-servers', { body: elsewhere }))).toBe('400 validation_error')
    }
  })

  test('a row that was changed behind its back sends nothing either', async () => {
    const id = await newServer(site.url)
    const connectionId = await signIn(site, `mcp-server:${id}`)
    const pending = await create(`mcp-server:${id}`)
    const changed = JSON.stringify({ type: 'http', url: closed.url, connectionId })
    await server.database.root('mcp_servers').where({ id }).update({ server: changed })
    await expect(use(connectionId)).rejects.toThrow('another address')
    closed.seen.length = 0
    expect(outcomeOf(await server.call(`/mcp-servers/${id}/tools`))).toBe('409 mcp_sign_in_needed')
    expect((await approve(site, pending.body.nextStep.authorizeUrl)).status).toBe(400)
    expect(closed.seen).toEqual([])
  })

  test('a server that is deleted takes its sign-ins along', async () => {
    const id = await newServer(site.url)
    const connectionId = await signIn(site, `mcp-server:${id}`)
    expect((await server.call(`/mcp-servers/${id}`, { method: 'DELETE' })).status).toBe(204)
    expect(await server.ok(`/connections/${connectionId}`)).toMatchObject({ status: 'revoked' })
    const again = await server.call(`/connections/${connectionId}/reauthorize`, { body: {} })
    expect(outcomeOf(again)).toBe('400 unsupported_auth_kind')
    expect(outcomeOf(await create(`mcp-server:${id}`))).toBe('404 integration_not_found')
  })

  test('a plugin that moves its server, or goes, takes the sign-ins to it along', async () => {
    const carrying = (url: string) => newPlugin({ name: 'carrier', servers: { notes: { type: 'http', url } } })
    const { id, mcpServers } = await server.ok('/plugins', { body: carrying(site.url) })
    const integration = `mcp-server:${mcpServers[0].id}`
    const first = await signIn(site, integration)
    expect(await server.ok(`/mcp-servers/${mcpServers[0].id}`)).toMatchObject({ connectionId: first })
    await server.ok(`/plugins/${id}/update`, { body: carrying(operated.url) })
    expect((await server.ok(`/connections/${first}`)).status).toBe('revoked')
    expect(await server.ok(`/mcp-servers/${mcpServers[0].id}`)).toMatchObject({ connectionId: null })
    await server.ok(`/plugins/${id}/update`, { body: carrying(site.url) })
    const second = await signIn(site, integration)
    expect((await server.call(`/plugins/${id}`, { method: 'DELETE' })).status).toBeLessThan(300)
    expect((await server.ok(`/connections/${second}`)).status).toBe('revoked')
  })

  test('the operator’s client is used at its issuer', async () => {
    const id = await newServer(operated.url)
    const { body } = await create(`mcp-server:${id}`)
    expect(new URL(body.nextStep.authorizeUrl).searchParams.get('client_id')).toBe('svc')
    expect((await approve(operated, body.nextStep.authorizeUrl)).status).toBe(200)
    expect(await clientsAt(operated)).toEqual([])
    server.world.advance(60_000)
    expect((await use(body.connection.id)).credentialVersion).toBe(2)
    server.world.advance(-60_000)
  })

  test('where nobody has a client a person is asked for one, which is used again once it has worked', async () => {
    const id = await newServer(closed.url)
    const asked = await create(`mcp-server:${id}`)
    expect([asked.status, asked.body]).toEqual([
      200,
      {
        object: 'connection_setup_result',
        status: 'human_required',
        nextStep: {
          kind: 'api_key_fields',
          fields: [
            { name: 'clientId', label: `OAuth client id at ${closed.provider.url}`, required: true },
            { name: 'clientSecret', label: expect.any(String), required: false },
            { name: 'issuer', label: expect.stringContaining(closed.provider.url), required: false },
          ],
        },
      },
    ])
    for (const apiKeyFields of [{}, { clientId: ' ' }, { clientId: 'a', other: 'b' }, { clientId: 'x'.repeat(1_001) }])
      expect(outcomeOf(await create(`mcp-server:${id}`, { apiKeyFields }))).toBe('400 api_key_invalid')
    const elsewhereMeant = { clientId: 'svc', clientSecret: 'x', issuer: 'https://id.example.com' }
    const meant = await create(`mcp-server:${id}`, { apiKeyFields: elsewhereMeant })
    expect([outcomeOf(meant), JSON.stringify(meant.body)]).toEqual([
      '400 oauth_exchange_failed',
      expect.stringContaining('the client is of https://id.example.com'),
    ])
    const wrong = { clientId: 'svc', clientSecret: 'not-its-secret' }
    const begun = await create(`mcp-server:${id}`, { apiKeyFields: wrong })
    expect((await approve(closed, begun.body.nextStep.authorizeUrl)).text).toContain('does not take the client')
    expect((await create(`mcp-server:${id}`)).body.nextStep.kind).toBe('api_key_fields')
    const right = { clientId: 'svc', clientSecret: 'client-secret-of-svc', issuer: closed.provider.url }
    const connectionId = await signIn(closed, `mcp-server:${id}`, { apiKeyFields: right })
    const [row] = await clientsAt(closed)
    expect(row).toMatchObject({ source: 'person', client_id: 'svc' })
    expect(Buffer.from(row.client_secret).includes('client-secret')).toBe(false)
    server.world.advance(60_000)
    expect((await use(connectionId)).credentialVersion).toBe(2)
    server.world.advance(-60_000)
    await signIn(closed, `mcp-server:${await newServer(closed.url)}`)
    // Another workspace has not.
    const other = await server.addPerson('owner', `other-${crypto.randomUUID().slice(0, 8)}`)
    const elsewhere = await newServer(closed.url, {}, other)
    expect((await create(`mcp-server:${elsewhere}`, {}, other)).body.nextStep.kind).toBe('api_key_fields')
  })

  test('an issuer that has forgotten the client gets a new one when the person begins again', async () => {
    const id = await newServer(site.url)
    await signIn(site, `mcp-server:${id}`)
    site.knows(server.url, registers)
    const accountLabel = crypto.randomUUID()
    const stale = await create(`mcp-server:${id}`, { accountLabel })
    await expect(approve(site, stale.body.nextStep.authorizeUrl)).rejects.toThrow('400')
    await signIn(site, `mcp-server:${id}`, { accountLabel })
  })

  test('a server of a program, of variables, or of a name and a password is not signed in to', async () => {
    for (const row of [
      { transport: 'stdio', command: 'x', url: undefined },
      { transport: 'sse' },
      { url: '${NOTES}/mcp' },
      { url: site.url.replace('//', '//a:b@') },
      { headers: { Host: 'other.example' } },
    ]) {
      const id = await newServer(site.url, row)
      expect([row, outcomeOf(await create(`mcp-server:${id}`))]).toEqual([row, '400 unsupported_auth_kind'])
    }
    for (const id of ['mcp_0000000000000000', '', 'x'])
      expect(outcomeOf(await create(`mcp-server:${id}`))).toBe('404 integration_not_found')
  })

  test('a run is given the token of its server while it lasts, and a new one when that ends', async () => {
    const admin = await server.addPerson('admin')
    const agent = await server.createAgent({ harness: 'claude', command: null }, admin.token)
    const id = await newServer(site.url, { agentId: agent.id }, admin)
    const connectionId = idFrom<ConnectionId>(await signIn(site, `mcp-server:${id}`, {}, admin))
    const device = await FakeDevice.connect(server, { token: admin.token })
    await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: admin.token })
    const run = await device.take()
    const [given] = Object.values(run.spec.mcpServers).filter(({ type }) => type === 'http')
    expect(given).toEqual({ type: 'http', url: site.url, connectionId })
    const ask = async (refusedVersion?: number) => {
      const of = { runId: run.runId, fence: run.fence, connectionId }
      device.send({
        type: 'credential.get',
        requestId: crypto.randomUUID(),
        ...of,
        ...(refusedVersion && { refusedVersion }),
      })
      return (await device.next('credential')).answer
    }
    /** As the door asks the server. */
    const statusWith = async (answer: Awaited<ReturnType<typeof ask>>) => {
      if (!answer.ok) throw new Error(answer.message)
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...answer.headers,
      }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
      return (await fetch(site.url, { method: 'POST', headers, body })).status
    }
    const first = await ask()
    expect(first).toMatchObject({ ok: true, version: 1, expiresInMs: expect.any(Number) })
    expect(await statusWith(first)).not.toBe(401)
    server.world.advance(60_000)
    const second = await ask()
    expect(second).toMatchObject({ ok: true, version: 2 })
    expect(await statusWith(second)).not.toBe(401)
    server.world.advance(-60_000)
    // Another address of the row ends it in the middle of the run.
    await server.ok(`/mcp-servers/${id}`, { method: 'PATCH', body: { url: closed.url }, token: admin.token })
    expect(await ask()).toMatchObject({ ok: false, message: expect.stringContaining('is revoked') })
    await run.end()
    await device.disconnect()
  })

  test('whose agent it is no more has not signed in for the new owner', async () => {
    const admin = await server.addPerson('admin')
    const agent = await server.createAgent({}, member.token)
    const id = await newServer(site.url, { agentId: agent.id }, member)
    const { body } = await create(`mcp-server:${id}`, {}, member)
    await server.database.root('agents').where({ id: agent.id }).update({ owner_user_id: admin.uuid })
    const page = await approve(site, body.nextStep.authorizeUrl, member)
    expect(page.status).toBe(400)
    expect(await server.ok(`/mcp-servers/${id}`)).toMatchObject({ connectionId: null })
    expect(outcomeOf(await create(`mcp-server:${id}`, {}, member))).toBe('403 connection_owner_mismatch')
  })

  test('two who come back at once have one sign-in, and one code is exchanged once', async () => {
    const id = await newServer(site.url)
    const { body } = await create(`mcp-server:${id}`)
    const back = await site.provider.visit(body.nextStep.authorizeUrl)
    site.provider.asked.length = 0
    const pages = await Promise.all([comeBack(back), comeBack(back)])
    expect(new Set(pages.map(({ status }) => status))).toEqual(new Set([200, 400]))
    expect(site.provider.asked).toEqual(['authorization_code good'])
  })
})
