import { sealCredential, type Credential } from '../../../../control-plane/resources/connections/own/credential.ts'
import { insertConnection, type ConnectionRow } from '../../../../control-plane/resources/connections/store.ts'
import { blankConnection } from '../../../../control-plane/resources/connections/steps/change.ts'
import { createVault } from '../../../../control-plane/vault/vault.ts'
import { serviceSettings } from '../../../kit/services.ts'
import { TestServer } from '../../../kit/server.ts'
import { secretsKey, type Stage } from '../../contract/stage.ts'

export const newConnection = (body: Record<string, unknown> = {}) => ({
  integrationId: 'deepwiki',
  ownerType: 'company',
  accountLabel: crypto.randomUUID(),
  ...body,
})

/** An active connection, of the owner unless a token is given. */
export async function makeConnection(
  { server }: Pick<Stage, 'server'>,
  { token, ...body }: Record<string, unknown> & { token?: string } = {},
): Promise<string> {
  const made = await server.ok('/connections', { body: newConnection(body), ...(token === undefined ? {} : { token }) })
  return made.connection.id as string
}

export async function makeRevoked(stage: Pick<Stage, 'server'>, body: Record<string, unknown> = {}): Promise<string> {
  const id = await makeConnection(stage, body)
  await stage.server.ok(`/connections/${id}/revoke`, { method: 'POST' })
  return id
}

/** A revoked connection to a service as no request leaves one. */
export async function makeOdd(stage: Stage, columns: { service_id: string; auth_kind: string }): Promise<string> {
  const id = await makeRevoked(stage)
  await stage.server.database.root('connections').where({ id }).update(columns)
  return id
}

/** Nobody listens there. */
const nowhere = 'http://127.0.0.1:1'
const closed = {
  services: [
    {
      id: 'closed-key',
      label: 'Closed',
      authKind: 'api_key',
      surfaces: ['mcp'],
      fields: [{ name: 'apiKey', label: 'Key', required: true }],
      probe: { url: nowhere },
    },
    {
      id: 'closed-oauth',
      label: 'Closed',
      authKind: 'oauth',
      surfaces: ['mcp'],
      oauth: {
        issuer: nowhere,
        authorizeUrl: `${nowhere}/auth`,
        tokenUrl: `${nowhere}/token`,
        revokeUrl: `${nowhere}/revoke`,
        clientId: 'svc',
        clientSecret: 'secret',
      },
    },
  ],
} as const

/** A replica whose services cannot be reached. */
export const withClosedServices = (stage: Stage): Promise<TestServer> =>
  stage.other('closed-services', () =>
    TestServer.start({
      beside: stage.server,
      settings: { SVC_SECRETS_KEY: secretsKey, ...serviceSettings(closed) },
    }),
  )

/** An active connection by OAuth, as a sign-in leaves it. */
export async function makeSignedIn(server: TestServer): Promise<string> {
  const [, service] = closed.services
  const { issuer, tokenUrl, clientId } = service.oauth
  const { world, owner } = server
  const now = world.now()
  const id = world.id('conn_')
  const held: Credential = {
    kind: 'oauth',
    issuer,
    tokenUrl,
    clientId,
    accessToken: 'access',
    refreshToken: 'refresh',
    obtainedAt: now,
    expiresAt: now + 3_600_000,
  }
  const of = { id, workspaceId: owner.workspaceId, accountLabel: id, createdByUuid: owner.uuid, now }
  const row: ConnectionRow = {
    ...blankConnection({ ...service, surfaces: ['mcp'] }, of),
    status: 'active',
    expiresAt: held.expiresAt,
    credential: sealCredential(createVault({ kind: 'given', text: secretsKey }, world), id, held),
    credentialVersion: 1,
  }
  await insertConnection(server.database.root, row)
  return id
}
