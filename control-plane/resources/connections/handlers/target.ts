import type { PersonUuid } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Service, ServiceCatalog } from '../../../catalog/services.ts'
import type { Db } from '../../../db/open.ts'
import { hasRole, type PersonCaller } from '../../../http/callers.ts'
import type { AgentRow } from '../../agents/store.ts'
import { lookUpMcpServer } from '../../mcp-servers/lookup.ts'
import { mcpServerIdOf, serviceOfServer } from '../service-of.ts'

/** A service that a person connects to, and the owner of the connection then. */
export interface Target {
  service: Service
  /** UUID; null: the workspace has it. */
  ownerUuid: PersonUuid | null
}

interface Setting {
  db: Db
  caller: PersonCaller
  services: Pick<ServiceCatalog, 'find'>
}

/**
 * A service of the catalog is connected to for the workspace. A sign-in to an MCP server is whose runs use it: the workspace's, or the
 * agent's owner's. null: there is none. Fails with `connection_owner_mismatch` where the caller may not connect.
 */
export async function findTarget({ db, caller, services }: Setting, serviceId: string): Promise<Target | null> {
  const serverId = mcpServerIdOf(serviceId)
  if (serverId === null) {
    const service = services.find(serviceId)
    if (service?.adminOnly === true && !hasRole(caller, 'admin'))
      fail('connection_owner_mismatch', { message: `Only a workspace admin connects to ${service.label}.` })
    return service && { service, ownerUuid: null }
  }
  const seen = await lookUpMcpServer(db, caller, serverId)
  if (seen === null) return null
  expectMaySignIn(caller, seen.agent)
  const service =
    serviceOfServer(seen.row) ??
    fail('unsupported_auth_kind', {
      message:
        'People sign in to servers with the transport http, whose address holds no variables and which have no header Host.',
    })
  return { service, ownerUuid: seen.agent?.ownerUuid ?? null }
}

/**
 * Fails where the sign-in is not for this caller: the agent's runs get the account of who signs in. Nobody lends theirs to another person's
 * agent by it, nor gives an agent another account.
 */
function expectMaySignIn(caller: PersonCaller, agent: AgentRow | null): void {
  const isOwn = agent !== null && agent.ownerUuid !== null
  if (isOwn ? agent.ownerUuid === caller.personUuid : hasRole(caller, 'admin')) return
  const who = isOwn ? "Only the agent's owner signs in to its" : 'Only a workspace admin signs in to these'
  fail('connection_owner_mismatch', { message: `${who} MCP servers.` })
}
