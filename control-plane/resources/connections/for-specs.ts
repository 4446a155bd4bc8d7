import type { ConnectionId } from '../../../shared/lib/ids.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { AgentRow } from '../agents/store.ts'
import { whyNotSentTo } from '../mcp-servers/rules.ts'
import { ConnectionUnusable, findUsable, useConnection, type UsedConnection } from './for-runs.ts'
import { connectionsOfAgent } from './agent-connections.ts'
import type { RenewalDependencies } from './renewal.ts'
import { findService } from './service-of.ts'

/**
 * A run whose spec names connections, for whoever adds what they give to requests: the device of the run, or the broker of its sandbox. All
 * that is asked for it fails with ConnectionUnusable.
 */
export interface SpecOwner {
  spec: RunSpec
  agent: Pick<AgentRow, 'workspaceId' | 'ownerUuid'>
}

const ownerOf = ({ agent }: SpecOwner) => ({
  workspaceId: agent.workspaceId,
  agentOwnerUuid: agent.ownerUuid,
})

const notGiven = () => new ConnectionUnusable('not_given', 'The run was not given this connection.')

/** Returns what the run's MCP servers with this connection are sent. `refused`: the version that one of them did not take. */
export async function credentialForServers(
  deps: RenewalDependencies,
  of: SpecOwner,
  { connectionId, refused = null }: { connectionId: ConnectionId; refused?: number | null },
): Promise<UsedConnection> {
  if (serversWith(of, connectionId).length === 0) throw notGiven()
  const used = await useConnection(deps, ownerOf(of), { connectionId, refused })
  await mustBeTheirs(deps, of, { connectionId, serviceId: used.serviceId })
  return used
}

/** Fails with ConnectionUnusable where the servers would not be given the credential now; renews nothing. */
export async function mustServeServers(
  deps: Pick<RenewalDependencies, 'root' | 'services' | 'world'>,
  of: SpecOwner,
  connectionId: ConnectionId,
): Promise<void> {
  if (serversWith(of, connectionId).length === 0) throw notGiven()
  const now = deps.world.now()
  const { serviceId } = await findUsable(deps.root, ownerOf(of), { connectionId, now })
  await mustBeTheirs(deps, of, { connectionId, serviceId })
}

const serversWith = ({ spec }: SpecOwner, connectionId: ConnectionId) =>
  Object.values(spec.mcpServers).filter((server) => server.type === 'http' && server.connectionId === connectionId)

/** The catalog, or the server that was signed in to, may have changed since the server was set. */
async function mustBeTheirs(
  { root, services }: Pick<RenewalDependencies, 'root' | 'services'>,
  of: SpecOwner,
  { connectionId, serviceId }: { connectionId: ConnectionId; serviceId: string },
): Promise<void> {
  const service = await findService({ db: root, services }, { workspaceId: of.agent.workspaceId, serviceId })
  const reasons = serversWith(of, connectionId).map(({ url }) => whyNotSentTo(url ?? '', service))
  const why = reasons.find((one) => one !== null)
  if (why !== undefined) throw new ConnectionUnusable('not_given', why)
}

/** The values of the variables that the run has of a connection. */
export async function variablesForRun(
  deps: RenewalDependencies,
  of: SpecOwner,
  connectionId: ConnectionId,
): Promise<{ env: Record<string, string>; version: number }> {
  const names = (of.spec.connectionVariables ?? []).find((one) => one.connectionId === connectionId)?.names ?? []
  if (names.length === 0) throw notGiven()
  const { given } = await connectionsOfAgent(deps.root, of.agent, { services: deps.services, now: deps.world.now() })
  if (!given.some(({ row }) => row.id === connectionId))
    throw new ConnectionUnusable('not_given', 'The agent is not given this connection any more.')
  const used = await useConnection(deps, ownerOf(of), { connectionId })
  const env = Object.fromEntries(Object.entries(used.env).filter(([name]) => names.includes(name)))
  return { env, version: used.credentialVersion }
}

/** A sentence for people and for the model. */
export function adviceFor({ reason, message }: ConnectionUnusable, connectionId: ConnectionId): string {
  if (reason === 'not_given') return message
  if (reason === 'not_active')
    return `${message} A person signs in anew with: svc connection reauthorize ${connectionId}`
  return reason === 'unreachable'
    ? `${message} Try again later.`
    : `${message} A person connects the service again, and sets the connection of the MCP server.`
}
