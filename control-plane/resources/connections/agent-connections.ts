import type { PersonUuid } from '../../../shared/lib/ids.ts'
import {
  mostWithVariables,
  type ConnectionVariables,
  type VariableLeftOut,
} from '../../../shared/runs/connection-variables.ts'
import { steersPrograms } from '../../../shared/lib/env-names.ts'
import { mcpServerName, type McpServer } from '../../../shared/runs/mcp-servers.ts'
import type { Service, ServiceCatalog } from '../../catalog/services.ts'
import type { Db } from '../../db/open.ts'
import { VaultError, type Vault } from '../../vault/vault.ts'
import type { AgentRow } from '../agents/store.ts'
import { listAdmins } from '../members/store.ts'
import { deliveredOf, variablesOf } from './own/credential.ts'
import { listConnectionsForRun } from './for-runs.ts'
import { heldBy } from './renewal.ts'
import type { ConnectionRow } from './store.ts'

/**
 * A connection that runs of an agent are given by themselves, without a server or a secret that names it. The agent's owner and workspace
 * admins decide what is in the environment of its programs and which servers it uses (docs/trust.md): so those count that they connected.
 * Others are used where somebody who may do so names them.
 */
export interface AgentConnection {
  row: ConnectionRow
  service: Service
}

type Owned = Pick<AgentRow, 'workspaceId' | 'ownerUuid'>

/** Returns whether runs of the agent are given a connection that it may use. */
function isGivenTo(
  { ownerUuid }: Pick<AgentRow, 'ownerUuid'>,
  { ownerUuid: holder, connectedByUuid: by }: ConnectionRow,
  admins: ReadonlySet<PersonUuid>,
): boolean {
  return holder !== null || (by !== null && (by === ownerUuid || admins.has(by)))
}

/** Lists the connections that runs of an agent are given, its owner's first, then the oldest first, and those that they are not. */
export async function connectionsOfAgent(
  db: Db,
  agent: Owned,
  { services, now }: { services: ServiceCatalog; now: number },
): Promise<{ given: AgentConnection[]; refused: AgentConnection[] }> {
  const run = { workspaceId: agent.workspaceId, agentOwnerUuid: agent.ownerUuid }
  const rows = await listConnectionsForRun(db, run, now)
  const known = rows.toSorted(inOrder).flatMap((row): AgentConnection[] => {
    const service = services.find(row.serviceId)
    return service === null ? [] : [{ row, service }]
  })
  if (known.length === 0) return { given: [], refused: [] }
  const admins = new Set(await listAdmins(db, agent.workspaceId))
  const isGiven = ({ row }: AgentConnection) => isGivenTo(agent, row, admins)
  return { given: known.filter(isGiven), refused: known.filter((one) => !isGiven(one)) }
}

const inOrder = (a: ConnectionRow, b: ConnectionRow): number =>
  Number(a.ownerUuid === null) - Number(b.ownerUuid === null) || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)

/** Returns the connections' MCP servers by name: the id of the service, and with the label of the account for all but its first. */
export function serversOf(given: readonly AgentConnection[]): Record<string, McpServer> {
  const servers: Record<string, McpServer> = {}
  for (const { row, service } of given) {
    if (service.mcp === undefined || !service.surfaces.includes('mcp')) continue
    const plain = serverNameOf(service.id)
    const name = Object.hasOwn(servers, plain) ? serverNameOf(service.id, row.accountLabel) : plain
    if (!mcpServerName.test(name) || Object.hasOwn(servers, name)) continue
    servers[name] = { type: 'http', url: service.mcp.url, connectionId: row.id }
  }
  return servers
}

const serverNameOf = (...words: readonly string[]): string =>
  words
    .join('-')
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^-+|-+$/g, '')

/** The variables that a run gets of them. Of several connections with one variable, the first gives it. */
export function agentConnectionVariables(
  given: readonly AgentConnection[],
  { secrets, harnessKeys }: { secrets: ReadonlySet<string>; harnessKeys: readonly string[] },
): { variables: ConnectionVariables[]; leftOut: VariableLeftOut[] } {
  const variables: ConnectionVariables[] = []
  const leftOut: VariableLeftOut[] = []
  const taken = new Set<string>()
  for (const { row, service } of given) {
    const names = variablesOf(service, row.fieldNames).filter((name) => {
      // The catalog refuses most of these; a release may know more of them than the one that read its file.
      if (steersPrograms(name)) return false
      const reason = secrets.has(name)
        ? 'secret'
        : harnessKeys.includes(name)
          ? 'harness_key'
          : taken.has(name)
            ? 'taken'
            : variables.length >= mostWithVariables
              ? 'too_many'
              : null
      if (reason !== null) leftOut.push({ name, reason })
      return reason === null
    })
    for (const name of names) taken.add(name)
    if (names.length > 0) variables.push({ connectionId: row.id, names })
  }
  return { variables, leftOut }
}

/** The values of all variables that an agent's runs are given now, to be taken out of texts. */
export async function agentConnectionValues(
  db: Db,
  agent: Owned,
  { vault, ...known }: { vault: Pick<Vault, 'open'>; services: ServiceCatalog; now: number },
): Promise<{ name: string; value: string }[]> {
  const { given } = await connectionsOfAgent(db, agent, known)
  return given
    .filter(({ row, service }) => variablesOf(service, row.fieldNames).length > 0)
    .flatMap((one) => Object.entries(envOf(one, vault)))
    .map(([name, value]) => ({ name, value }))
}

/** Nobody is given what this server cannot open. */
function envOf({ row, service }: AgentConnection, vault: Pick<Vault, 'open'>): Record<string, string> {
  try {
    const held = heldBy(vault, row)
    return held === null ? {} : deliveredOf(service, held).env
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
    return {}
  }
}
