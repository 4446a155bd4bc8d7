import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { removeUser } from '../../../control-plane/operator/access.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { hasPostgres } from '../../kit/database.ts'
import { McpOauthServer } from '../../kit/mcp-oauth-server.ts'
import { OauthProvider } from '../../kit/provider.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'

// Connections that go with their person or their workspace: their providers are told later, and nobody waits for that.

const databases = ['sqlite', ...(hasPostgres() ? (['postgres'] as const) : [])] as const
const minuteMs = 60_000

describe.each(databases)('on %s', (database) => {
  let provider: OauthProvider
  let site: McpOauthServer
  let server: TestServer
  let visits = 0
  beforeAll(async () => {
    provider = await OauthProvider.start()
    site = await McpOauthServer.start()
    const file = serviceSettings({ services: [provider.entry()] })
    server = await TestServer.start({
      database,
      settings: { SVC_SECRETS_KEY: 'ab'.repeat(32), SVC_TRUSTED_PROXIES: '1', ...file },
    })
    provider.serve(server.url)
    site.knows(server.url, { features: { registration: { enabled: true }, revocation: { enabled: true } } })
  })
  afterAll(async () => {
    await server.stop()
    await site.stop()
    await provider.stop()
  })
  afterEach(() => {
    provider.wire = 'good'
    provider.revoked.length = 0
  })

  async function signIn(by: Person, body: object, at = provider): Promise<string> {
    const begun = await server.ok('/connections', { body, token: by.token })
    const back = await at.visit(begun.nextStep.authorizeUrl)
    const headers = { 'x-forwarded-for': `10.3.${visits++}.1` }
    const page = await (await signedIn(server, by.email)).visit(back, { headers })
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connected')])
    return begun.connection.id as string
  }
  const ofAll = () => ({ integrationId: 'provider', ownerType: 'company', accountLabel: crypto.randomUUID() })
  /** A connection of the person alone, as sign-ins to MCP servers of their agents are. */
  async function signInOwn(by: Person): Promise<string> {
    const id = await signIn(by, ofAll())
    await server.database.root('connections').where({ id }).update({ owner_user_id: by.uuid })
    return id
  }
  const sweep = () => server.plane.sweeper.runAll()
  const left = () => server.database.root('connection_withdrawals').pluck('id')
  const isThere = async (id: string) =>
    (await server.database.root('connections').where({ id }).first('id')) !== undefined
  const works = async (of = provider) => (await of.audienceOf(of.exchanges.at(-1)!.given[0]!)) !== null
  const leave = (member: Person) =>
    server.ok(`/workspaces/${member.workspaceId}/leave`, { body: {}, token: member.token })
  async function removeWorkspaceOf(owner: Person): Promise<void> {
    const { name } = await server.ok('/workspaces', { token: owner.token })
    const path = `/workspaces/${owner.workspaceId}`
    await server.ok(path, { method: 'DELETE', body: { confirmName: name }, token: owner.token })
  }

  test('who leaves does not wait for a provider that is away; it is told when it is back', async () => {
    const member = await server.addPerson('member')
    const id = await signInOwn(member)
    provider.wire = 'away'
    await leave(member)
    expect([await isThere(id), await left()]).toEqual([false, [`${id}:1`]])
    await sweep()
    expect(await left()).toEqual([`${id}:1`])
    provider.wire = 'good'
    // Not before its time.
    await sweep()
    expect([provider.revoked, await works()]).toEqual([[], true])
    server.world.advance(minuteMs)
    await sweep()
    expect([provider.revoked, await works(), await left()]).toEqual([['asked'], false, []])
    await sweep()
    expect(provider.revoked).toHaveLength(1)
  })

  test('an answer that was lost is asked for again, and after some tries the credential goes all the same', async () => {
    const member = await server.addPerson('member')
    await signInOwn(member)
    provider.wire = 'lost'
    await leave(member)
    for (let hours = 0; hours < 9; hours++) {
      await sweep()
      server.world.advance(60 * minuteMs)
    }
    expect([provider.revoked.length, await left()]).toEqual([5, []])
  })

  test('whom the operator removes loses theirs, and the workspace keeps its own', async () => {
    const member = await server.addPerson('member')
    const [mine, shared] = [await signInOwn(member), await signIn(server.owner, ofAll())]
    await server.database.root.transaction((tx) =>
      removeUser(tx, server.world, { email: member.email, newOwner: null }),
    )
    await sweep()
    expect([await isThere(mine), await isThere(shared)]).toEqual([false, true])
    expect([provider.revoked, await works()]).toEqual([['asked'], true])
  })

  test('a removed workspace is gone but for what its providers are still to be told by', async () => {
    const owner = await server.addPerson('owner', `gone-${crypto.randomUUID().slice(0, 8)}`)
    await signIn(owner, ofAll())
    const body = { name: 'notes', url: site.url, transport: 'http' }
    const { id: serverId } = await server.ok('/mcp-servers', { body, token: owner.token })
    await signIn(owner, { integration: `mcp-server:${serverId}`, ownerType: 'company' }, site.provider)
    const { root } = server.database
    const rowsOf = async (table: string) => (await root(table).where({ workspace_id: owner.workspaceId })).length
    provider.wire = 'away'
    site.provider.wire = 'away'
    await removeWorkspaceOf(owner)
    await expect.poll(() => rowsOf('members')).toBe(0)
    expect([await rowsOf('connections'), await rowsOf('connection_clients')]).toEqual([0, 1])
    await sweep()
    provider.wire = 'good'
    site.provider.wire = 'good'
    server.world.advance(minuteMs)
    await sweep()
    expect([await works(), await works(site.provider), await left()]).toEqual([false, false, []])
    await sweep()
    await expect.poll(() => rowsOf('connection_clients')).toBe(0)
    expect(await root('workspaces').where({ id: owner.workspaceId })).toEqual([])
  })

  test('a server that is removed ends its sign-ins, also at their provider', async () => {
    const body = { name: 'other', url: site.url, transport: 'http' }
    const { id: serverId } = await server.ok('/mcp-servers', { body })
    const integration = `mcp-server:${serverId}`
    const id = await signIn(server.owner, { integration, ownerType: 'company' }, site.provider)
    await server.ok(`/mcp-servers/${serverId}`, { method: 'DELETE' })
    expect((await server.ok(`/connections/${id}`)).status).toBe('revoked')
    await sweep()
    expect([await works(site.provider), await left()]).toEqual([false, []])
  })

  test('services without a provider leave nothing to tell', async () => {
    const member = await server.addPerson('member')
    const id = await signInOwn(member)
    await server.database.root('connections').where({ id }).update({ auth_kind: 'api_key' })
    await leave(member)
    expect(await left()).toEqual([])
  })
})
