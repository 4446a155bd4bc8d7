import { fail } from '../../../../shared/api/errors.ts'
import type { mcpServerRoutes } from '../../../../shared/api/mcp-servers.ts'
import { filledServers, serverVariables } from '../../../../shared/runs/filled-servers.ts'
import type { McpServer } from '../../../../shared/runs/mcp-servers.ts'
import { hasRole } from '../../../http/callers.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { wholeList } from '../../../http/whole-list.ts'
import { ConnectionUnusable, useConnection, type UsedConnection } from '../../connections/for-runs.ts'
import { viewerOfConnections } from '../../connections/lookup.ts'
import { findService } from '../../connections/service-of.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { lookUpMcpServer } from '../lookup.ts'
import { whyNotSentTo } from '../rules.ts'
import { secretValuesFor } from '../own/secret-values.ts'
import { listToolsOf, ToolListError } from '../own/tool-list.ts'
import type { McpServerRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'root' | 'vault' | 'services' | 'outbound' | 'renewals'>
type Input = HandlerInput<(typeof mcpServerRoutes)['tools']>
type HttpServer = Extract<McpServer, { type: 'http' | 'sse' }>

/** Asks the server from here, as a run of its would from a device. */
export async function listTools(input: Input, deps: Dependencies) {
  const { db, caller, params, world, signal } = input
  const { row } =
    (await lookUpMcpServer(db, caller, params.mcpServerId)) ?? fail('mcp_server_not_found', { param: 'mcpServerId' })
  if (row.server.type !== 'http')
    return fail('mcp_server_not_asked', { message: 'Only servers with the transport http are asked from here.' })
  const { server, secrets } = await filled(input, { row, server: row.server }, deps)
  const ask = async (refused: number | null) => {
    const used = await credentialOf(input, { row, refused }, deps)
    const sent = { ...named(server.headers ?? {}), ...named(used?.headers ?? {}) }
    const values = [...secrets, ...(used?.values ?? []).map((value) => ({ name: used!.connectionId, value }))]
    const source = { url: server.url, headers: sent, secrets: values }
    const tools = await listToolsOf(source, { outbound: deps.outbound, world, signal }).catch((error: unknown) => {
      if (error instanceof ToolListError) return error
      throw error
    })
    return { used, tools }
  }
  let { used, tools } = await ask(null)
  const version = used?.credentialVersion ?? null
  // A token may have been withdrawn before its time.
  if (tools instanceof ToolListError && tools.refusedWith === 401 && version !== null) {
    const again = await credentialOf(input, { row, refused: version }, deps)
    if (again !== null && again.credentialVersion !== version) ({ used, tools } = await ask(null))
  }
  if (!(tools instanceof ToolListError)) return wholeList(tools)
  input.log.info({ mcpServerId: row.id, reason: tools.message }, 'tools of an MCP server could not be listed')
  if (tools.refusedWith === null) return fail('mcp_server_unreadable', { message: tools.message })
  return fail('mcp_sign_in_needed', { message: `${tools.message} ${adviceFor(row)}` })
}

const adviceFor = ({ id }: McpServerRow) => `A person signs in with: svc mcp sign-in ${id}`

/** Headers have one name in whatever letters. */
const named = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** The server with the values that a run would have, of secrets. */
async function filled(
  { db, caller }: Input,
  { row, server }: { row: McpServerRow; server: HttpServer },
  { vault }: Dependencies,
) {
  const names = [...new Set(serverVariables(server))]
  if (names.length === 0) return { server, secrets: [] }
  if (!hasRole(caller, 'admin'))
    return fail('mcp_values_of_runs', { message: `Its runs have the values of ${names.join(', ')}, and admins.` })
  const env = await secretValuesFor(db, row, { names, vault })
  const { servers, leftOut } = filledServers({ server }, env)
  const [made, left] = [servers['server'], leftOut[0]]
  if (made === undefined || made.type === 'stdio')
    return fail('mcp_values_of_runs', { message: `A run may have what is missing here: ${left?.why ?? 'a value'}.` })
  return { server: made, secrets: Object.entries(env).map(([name, value]) => ({ name, value })) }
}

/** null: the server has no connection. Fails with `mcp_sign_in_needed`. */
async function credentialOf(
  { db, caller, world, log }: Input,
  { row, refused }: { row: McpServerRow; refused: number | null },
  deps: Dependencies,
): Promise<UsedConnection | null> {
  const { workspaceId, server } = row
  if (server.type !== 'http' || server.connectionId === undefined) return null
  const { connectionId, url } = server
  const owner = { workspaceId, agentOwnerUuid: viewerOfConnections(caller) }
  try {
    const used = await useConnection({ ...deps, world, log }, owner, { connectionId, refused })
    const service = await findService({ db, services: deps.services }, { workspaceId, serviceId: used.serviceId })
    const why = whyNotSentTo(url, service)
    return why === null ? used : fail('mcp_sign_in_needed', { message: `${why} ${adviceFor(row)}` })
  } catch (error) {
    if (!(error instanceof ConnectionUnusable)) throw error
    return fail('mcp_sign_in_needed', { message: `${error.message} ${adviceFor(row)}` })
  }
}
