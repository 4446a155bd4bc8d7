import { idFrom, type ConnectionId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { loadServices, type ServiceCatalog } from '../../../control-plane/catalog/services.ts'
import { createOutbound } from '../../../control-plane/outbound/outbound.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { openCredential } from '../../../control-plane/resources/connections/own/credential.ts'
import { useConnection, type UsedConnection } from '../../../control-plane/resources/connections/for-runs.ts'
import {
  claimTokens,
  Renewals,
  type RenewalDependencies,
} from '../../../control-plane/resources/connections/renewal.ts'
import { findConnectionById } from '../../../control-plane/resources/connections/store.ts'
import { createVault } from '../../../control-plane/vault/vault.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { hasPostgres } from '../../kit/database.ts'
import { OauthProvider } from '../../kit/provider.ts'
import { TestServer } from '../../kit/server.ts'
import { serviceSettings, startKeyService, type KeyService } from '../../kit/services.ts'

// What runs are given of connections, and the renewal of tokens: a provider whose refresh tokens work once and which revokes the whole
// sign-in when one comes twice, and two replicas.

const key = 'ab'.repeat(32)
const databases = ['sqlite', ...(hasPostgres() ? (['postgres'] as const) : [])] as const

describe.each(databases)('on %s', (database) => {
  let provider: OauthProvider
  let service: KeyService
  let server: TestServer
  let other: TestServer
  let replicas: RenewalDependencies[]
  let catalog: ServiceCatalog
  let visits = 0

  beforeAll(async () => {
    provider = await OauthProvider.start()
    service = await startKeyService()
    const file = serviceSettings({ services: [provider.entry(), service.entry] })
    const settings = { SVC_SECRETS_KEY: key, SVC_TRUSTED_PROXIES: '1', ...file }
    server = await TestServer.start({ database, settings })
    other = await TestServer.start({ beside: server, settings: { ...settings, SVC_PUBLIC_URL: server.url } })
    provider.serve(server.url)
    catalog = loadServices(file.SVC_SERVICES_FILE)
    const { world } = server
    const outbound = createOutbound({ allowHosts: ['127.0.0.1'], world: realWorld })
    replicas = [server, other].map(({ database: { root } }) => ({
      root,
      world,
      log: silentLog,
      vault: createVault({ kind: 'given', text: key }, world),
      services: catalog,
      outbound,
      renewals: new Renewals(),
    }))
  })
  afterAll(async () => {
    await other.stop()
    await server.stop()
    await provider.stop()
    await service.stop()
  })

  /** A connection with tokens of a minute. */
  async function signIn(): Promise<string> {
    const body = { integrationId: 'provider', ownerType: 'company', accountLabel: crypto.randomUUID() }
    const { nextStep, connection } = await server.ok('/connections', { body })
    const back = await provider.visit(nextStep.authorizeUrl)
    const headers = { 'x-forwarded-for': `10.1.${visits++}.1` }
    expect((await (await signedIn(server)).visit(back, { headers })).status).toBe(200)
    provider.asked.length = 0
    return connection.id as string
  }
  const run = () => ({ workspaceId: server.owner.workspaceId, agentOwnerUuid: null })
  const useBy = (deps: RenewalDependencies, connectionId: ConnectionId, refused?: number): Promise<UsedConnection> =>
    useConnection(deps, run(), { connectionId, ...(refused !== undefined && { refused }) })
  /** So many runs at once, on both replicas. */
  const useAtOnce = (id: ConnectionId, times = 20) =>
    Promise.all(Array.from({ length: times }, (_, n) => useBy(replicas[n % 2]!, id)))
  const rowOf = async (id: ConnectionId) => (await findConnectionById(server.database.root, id))!
  const heldOf = async (id: ConnectionId) => openCredential(replicas[0]!.vault, id, (await rowOf(id)).credential!)

  /** A replica that dies once the provider has done its part: its call never comes back. */
  function dying(): { deps: RenewalDependencies; dead: Promise<void> } {
    let die!: () => void
    const dead = new Promise<void>((resolve) => (die = resolve))
    const { outbound } = replicas[0]!
    const fetch: typeof outbound.fetch = async (...asked) => {
      await (await outbound.fetch(...asked)).text()
      die()
      return new Promise(() => undefined)
    }
    return { deps: { ...replicas[0]!, outbound: { fetch } }, dead }
  }

  test('runs have headers and variables of a key, and of what their agent may use alone', async () => {
    const apiKeyFields = { apiKey: service.key, region: 'eu' }
    const body = { integrationId: 'key-service', ownerType: 'company', apiKeyFields }
    const { connection } = await server.ok('/connections', { body })
    expect(await useBy(replicas[1]!, connection.id)).toEqual({
      connectionId: connection.id,
      serviceId: 'key-service',
      values: [service.key],
      credentialVersion: 1,
      expiresAt: null,
      headers: { authorization: `Bearer ${service.key}` },
      env: { KEY_SERVICE_KEY: service.key, KEY_SERVICE_REGION: 'eu' },
    })
    expect((await server.ok(`/connections/${connection.id}`)).lastUsedAt).not.toBeNull()
    const { root } = server.database
    await root('connections').where({ id: connection.id }).update({ owner_user_id: server.owner.uuid })
    await expect(useBy(replicas[0]!, connection.id)).rejects.toMatchObject({ reason: 'not_found' })
    const asOwner = { ...run(), agentOwnerUuid: server.owner.uuid }
    expect(await useConnection(replicas[0]!, asOwner, { connectionId: connection.id })).toMatchObject({ headers: {} })
    const elsewhere = { workspaceId: idFrom<WorkspaceUuid>(realWorld.uuid()), agentOwnerUuid: server.owner.uuid }
    await expect(useConnection(replicas[0]!, elsewhere, { connectionId: connection.id })).rejects.toMatchObject({
      reason: 'not_found',
    })
  })

  test('however many use it on both replicas, each refresh token is used once, and all get the token that it gave', async () => {
    const id = await signIn()
    const first = await useBy(replicas[0]!, idFrom(id))
    expect(first.env).toEqual({ PROVIDER_TOKEN: first.headers['authorization']!.slice('Bearer '.length) })
    expect(provider.asked).toEqual([])
    for (let round = 1; round <= 4; round++) {
      // Beyond its end, so that everybody must wait for the next one.
      server.world.advance(61_000)
      const used = await useAtOnce(idFrom(id))
      expect(new Set(used.map(({ headers }) => headers['authorization'])).size).toBe(1)
      expect(used[0]!.credentialVersion).toBe(1 + round)
      expect(provider.asked).toEqual(Array.from({ length: round }, () => 'refresh_token good'))
    }
    // Near its end it is renewed, and nobody waits for whoever does.
    server.world.advance(45_000)
    await useAtOnce(idFrom(id))
    expect(provider.asked).toEqual(Array.from({ length: 5 }, () => 'refresh_token good'))
    expect((await useBy(replicas[1]!, idFrom(id))).credentialVersion).toBe(6)
  })

  test('a provider that is out of reach expires nothing: the token goes on while it lasts, and is renewed later', async () => {
    const id = await signIn()
    const before = await heldOf(idFrom(id))
    provider.wire = 'away'
    server.world.advance(45_000)
    expect((await useBy(replicas[0]!, idFrom(id))).credentialVersion).toBe(1)
    server.world.advance(30_000)
    await expect(useBy(replicas[1]!, idFrom(id))).rejects.toMatchObject({ reason: 'unreachable' })
    expect(await heldOf(idFrom(id))).toEqual(before)
    expect(await server.ok(`/connections/${id}`)).toMatchObject({ status: 'active' })
    provider.wire = 'good'
    expect((await useBy(replicas[1]!, idFrom(id))).credentialVersion).toBe(2)
  })

  test('a provider that refuses expires the connection, with a sentence, and deletes nothing', async () => {
    const id = await signIn()
    const held = await heldOf(idFrom(id))
    if (held.kind !== 'oauth') throw new Error('no tokens')
    const body = new URLSearchParams({
      token: held.refreshToken!,
      client_id: 'svc',
      client_secret: 'client-secret-of-svc',
    })
    const authorization = `Basic ${Buffer.from('svc:client-secret-of-svc').toString('base64')}`
    body.delete('client_secret')
    const revoked = await fetch(`${provider.url}/token/revocation`, {
      method: 'POST',
      body,
      headers: { authorization },
    })
    expect(revoked.status).toBe(200)
    server.world.advance(61_000)
    const ends = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => useBy(replicas[n % 2]!, idFrom(id))))
    expect(ends.map((end) => end.status === 'rejected' && (end.reason as { reason: string }).reason)).toEqual(
      ends.map(() => 'not_active'),
    )
    expect(provider.asked).toEqual(['refresh_token refused'])
    expect(await server.ok(`/connections/${id}`)).toMatchObject({
      status: 'expired',
      statusReason: 'The provider does not renew the sign-in. The provider says `invalid_grant`. Sign in again.',
    })
    expect(await heldOf(idFrom(id))).toEqual(held)
  })

  test('a replica that is killed before it asked the provider costs nothing', async () => {
    const id = await signIn()
    server.world.advance(45_000)
    expect(await claimTokens(replicas[0]!, await rowOf(idFrom(id)))).not.toBeNull()
    // Meanwhile the others have the token that still works.
    expect((await useBy(replicas[1]!, idFrom(id))).credentialVersion).toBe(1)
    server.world.advance(31_000)
    expect((await useBy(replicas[1]!, idFrom(id))).credentialVersion).toBe(2)
    expect(provider.asked).toEqual(['refresh_token good'])
  })

  test('what a kill between the answer of the provider and the database lost is expired, with a sentence', async () => {
    const id = await signIn()
    server.world.advance(61_000)
    const { deps, dead } = dying()
    void useBy(deps, idFrom(id))
    await dead
    server.world.advance(31_000)
    await expect(useBy(replicas[1]!, idFrom(id))).rejects.toMatchObject({ reason: 'not_active' })
    expect(await server.ok(`/connections/${id}`)).toMatchObject({
      status: 'expired',
      statusReason: expect.stringContaining('The server was stopped while it renewed the token'),
    })
  })

  test('a renewal that comes to its end after the connection was revoked stores nothing', async () => {
    const id = await signIn()
    server.world.advance(61_000)
    provider.onToken = async (moment) => {
      if (moment === 'done') await server.ok(`/connections/${id}/revoke?local=true`, { method: 'POST' })
    }
    await expect(useBy(replicas[0]!, idFrom(id))).rejects.toMatchObject({ reason: 'not_active' })
    provider.onToken = () => undefined
    expect(await rowOf(idFrom(id))).toMatchObject({ status: 'revoked', credential: null, renewedBy: null })
  })

  test('a token that the service refused is renewed once, however many say so, and a young one is not', async () => {
    const id = await signIn()
    const { credentialVersion } = await useBy(replicas[0]!, idFrom(id))
    await useBy(replicas[0]!, idFrom(id), credentialVersion)
    expect(provider.asked).toEqual([])
    server.world.advance(11_000)
    const used = await Promise.all(
      Array.from({ length: 10 }, (_, n) => useBy(replicas[n % 2]!, idFrom(id), credentialVersion)),
    )
    expect(used.map((each) => each.credentialVersion)).toEqual(used.map(() => credentialVersion + 1))
    expect(provider.asked).toEqual(['refresh_token good'])
  })

  test('a sign-in of another provider of the same name is sent nowhere', async () => {
    const id = await signIn()
    const moved = { ...catalog.find('provider')! }
    moved.oauth = { ...moved.oauth!, issuer: 'https://id.example.com', tokenUrl: `${provider.url}/other` }
    const services = { ...catalog, find: () => moved }
    await expect(useBy({ ...replicas[0]!, services }, idFrom(id))).rejects.toMatchObject({ reason: 'not_active' })
    expect(provider.asked).toEqual([])
  })
})

test.runIf(hasPostgres())('the key of the secrets is made before it is said which it is', async () => {
  const service = await startKeyService()
  const folder = mkdtempSync(join(inject('databases').folder, 'connections-'))
  const settings = { SVC_DATA_DIR: folder, ...serviceSettings({ services: [service.entry] }) }
  const server = await TestServer.start({ database: 'postgres', settings })
  const body = { integrationId: 'deepwiki', ownerType: 'company' }
  await server.ok('/connections', { body })
  const apiKeyFields = { apiKey: service.key }
  await server.ok('/connections', { body: { ...body, integrationId: 'key-service', apiKeyFields } })
  // It would not start, were its key not the one of the database.
  await (await TestServer.start({ beside: server, settings })).stop()
  await server.ok('/secrets', { body: { name: 'other', value: 'x' } })
  await server.stop()
  await service.stop()
})
