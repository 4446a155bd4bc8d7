import { fail, failField } from '../../../../shared/api/errors.ts'
import { mcpServerId, toTimestamp } from '../../../../shared/api/ids.ts'
import { mcpServerRoutes, type McpServerShown } from '../../../../shared/api/mcp-servers.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { ruleNameOf } from '../../../../shared/runs/run-mcp-servers.ts'
import type { McpServer } from '../../../../shared/runs/mcp-servers.ts'
import type { ServiceCatalog } from '../../../catalog/services.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { databaseTroubleOf } from '../../../db/dialect.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { inSavepoint } from '../../../db/transaction.ts'
import { hasRole, type Caller, type PersonCaller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { viewerOfAgents } from '../../agents/rules.ts'
import type { AgentRow } from '../../agents/store.ts'
import { mayDecideWhatRuns } from '../../agents/trust-rules.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { lookUpConnection } from '../../connections/lookup.ts'
import { findService, serviceIdOfServer } from '../../connections/service-of.ts'
import { voidSignIns } from '../../connections/steps/server-sign-in.ts'
import { findConnection } from '../../connections/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { lookUpMcpServer } from '../lookup.ts'
import { isSameServer, isTrusted, mostServers, sentOf, serverOf, whyNotSentTo } from '../rules.ts'
import {
  countMcpServers,
  insertMcpServer,
  listMcpServers,
  removeMcpServer,
  replaceMcpServer,
  type McpServerRow,
} from '../store.ts'
import { listTools } from './tools.ts'

type Routes = typeof mcpServerRoutes

type Dependencies = Pick<ResourceDependencies, 'root' | 'vault' | 'services' | 'outbound' | 'renewals'>

export function mcpServerHandlers(deps: Dependencies): ImplementedRoute[] {
  const { services } = deps
  return implement(mcpServerRoutes, {
    list,
    create: (input) => create(input, services),

    async get({ db, caller, params }) {
      return shown((await seen(db, caller, params.mcpServerId)).row)
    },

    tools: (input) => listTools(input, deps),
    update: (input) => update(input, services),
    delete: remove,
  })
}

const listCursor = timeAndId(mcpServerId)

async function list({ db, caller, query }: HandlerInput<Routes['list']>) {
  const { limit } = query
  const agent = query.agentId === undefined ? undefined : await lookUpAgent(db, caller, query.agentId)
  if (agent === null) return pageByTime([], limit, shown)
  const viewer = viewerOfAgents(caller)
  const rows = await listMcpServers(db, {
    workspaceId: caller.workspaceId,
    ...(agent !== undefined && { agentRef: agent.id }),
    ...(!viewer.seesAll && { visibleTo: viewer }),
    limit,
    ...beforeOf(query, listCursor),
  })
  return pageByTime(rows, limit, shown)
}

async function create(input: HandlerInput<Routes['create']>, services: ServiceCatalog) {
  const { db, caller, body, world } = input
  const { name, agentId: reference, ...fields } = body
  const agent = reference === undefined ? null : await agentOf(db, caller, reference)
  if (caller.kind === 'agent' && agent !== null && agent.id !== caller.agentRef)
    fail('agent_self_only', { param: 'agentId' })
  const server = readServer(fields)
  await checkConnection({ db, caller, services }, { server, before: null })
  if (caller.kind === 'agent')
    return raisePlatformChange(
      { ...input, body: { ...body, ...(agent !== null && { agentId: agent.id }) } },
      { caller, routeId: mcpServerRoutes.create.id, params: {} },
    )
  mustDecide(caller, agent)
  if (isTrusted(server)) mustBeTrusting(caller)
  const { workspaceId, personRef: createdByRef } = caller
  const agentRef = agent?.id ?? null
  if ((await countMcpServers(db, { workspaceId, agentRef, isOfPlugin: false })) >= mostServers)
    failField(agent === null ? 'name' : 'agentId', `There are at most ${mostServers}.`)
  const at = world.now()
  const row: McpServerRow = {
    id: world.id('mcp_'),
    workspaceId,
    agentRef,
    name,
    ruleName: ruleNameOf(name),
    server,
    pluginId: null,
    nameInPlugin: null,
    createdByRef,
    version: 1,
    createdAt: at,
    updatedAt: at,
  }
  await orTaken(db, (tx) => insertMcpServer(tx, row))
  return answer(201, shown(row))
}

async function update(input: HandlerInput<Routes['update']>, services: ServiceCatalog) {
  const { db, caller, params, body, world } = input
  const { row: before, agent } = await seen(db, caller, params.mcpServerId)
  const { name, ...fields } = body
  // The settings of a server that a plugin brings are the plugin's; whose connection it uses is the workspace's.
  if (before.pluginId !== null && Object.keys(body).some((field) => field !== 'connectionId'))
    fail('mcp_server_of_plugin')
  const sent = { ...sentOf(before.server), ...withoutUndefined(fields) }
  // A person who signed in to the server before has not signed in to this one.
  const isOther = isOtherServer(before.server, sent)
  if (isOther && fields.connectionId === undefined && (await holdsOwnSignIn(db, before))) sent.connectionId = null
  // An admin trusted the server at the address of then.
  const isElsewhere = sent.url !== sentOf(before.server).url && !(caller.kind === 'person' && hasRole(caller, 'admin'))
  if (isElsewhere && fields.trustSkills === undefined) sent.trustSkills = false
  const server = readServer(sent)
  await checkConnection({ db, caller, services }, { server, before: before.server })
  if (caller.kind === 'agent')
    return raisePlatformChange(input, {
      caller,
      routeId: mcpServerRoutes.update.id,
      params: { mcpServerId: before.id },
    })
  mustDecide(caller, agent)
  if (isTrusted(server) && (isElsewhere || !isTrusted(before.server))) mustBeTrusting(caller)
  const changes = { server, ...(name !== undefined && { name, ruleName: ruleNameOf(name) }) }
  const after = changedRow(before, changes, world.now())
  await orTaken(db, (tx) => replaceMcpServer(tx, before, after))
  if (isOther) await voidSignIns({ tx: db, world }, before, 'The MCP server has another address now.')
  return shown(after)
}

const isOtherServer = (before: McpServer, { transport, url }: Parameters<typeof serverOf>[0]): boolean =>
  before.type === 'http' && (transport !== 'http' || (before.url !== url && !isSameServer(before.url, url ?? '')))

async function holdsOwnSignIn(db: Db, { id, workspaceId, server }: McpServerRow): Promise<boolean> {
  if (server.type === 'stdio' || server.connectionId === undefined) return false
  const connection = await findConnection(db, workspaceId, server.connectionId)
  return connection?.serviceId === serviceIdOfServer(id)
}

async function remove(input: HandlerInput<Routes['delete']>) {
  const { db, caller, params, world } = input
  const { row, agent } = await seen(db, caller, params.mcpServerId)
  if (row.pluginId !== null) fail('mcp_server_of_plugin')
  if (caller.kind === 'agent') {
    const change = { caller, routeId: mcpServerRoutes.delete.id, params: { mcpServerId: row.id } }
    return raisePlatformChange({ ...input, body: null }, change)
  }
  mustDecide(caller, agent)
  await voidSignIns({ tx: db, world }, row, 'The MCP server was deleted.')
  await removeMcpServer(db, row.id)
  return undefined
}

/** Skills of a server pass by what the workspace says about skills: which agent has which, and who wrote them. */
function mustBeTrusting(caller: PersonCaller): void {
  if (!hasRole(caller, 'admin'))
    fail('http_exception', { message: 'Only workspace admins trust an MCP server for its skills (`trustSkills`).' })
}

async function agentOf(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  return agent === null || agent.deletedAt !== null ? fail('agent_not_found', { param: 'agentId' }) : agent
}

const seen = async (db: Db, caller: Caller, id: string) =>
  (await lookUpMcpServer(db, caller, id)) ?? fail('mcp_server_not_found', { param: 'mcpServerId' })

/** A server is a program on the device of a run, or is sent the secrets of its agent (docs/trust.md). */
function mustDecide(caller: PersonCaller, agent: AgentRow | null): void {
  if (agent === null ? hasRole(caller, 'admin') : mayDecideWhatRuns(caller, agent)) return
  const who = agent === null ? 'Only workspace admins give' : "Only the agent's owner and workspace admins give it"
  fail('http_exception', { message: `${who} MCP servers.` })
}

/**
 * Fails where somebody would make runs use a connection that they do not see. A connection that was there before and is gone by now stays
 * named, and the server's tools say so.
 */
async function checkConnection(
  { db, caller, services }: { db: Db; caller: Caller; services: ServiceCatalog },
  { server, before }: { server: McpServer; before: McpServer | null },
): Promise<void> {
  if (server.type === 'stdio' || server.connectionId === undefined) return
  const { connectionId, url } = server
  const isKept = before !== null && before.type !== 'stdio' && before.connectionId === connectionId
  if (isKept && before.url === url) return
  const connection = isKept
    ? await findConnection(db, caller.workspaceId, connectionId)
    : await lookUpConnection(db, caller, connectionId)
  const why = whyNotSentTo(url, connection && (await findService({ db, services }, connection)))
  if (why !== null) failField('url', why)
}

function readServer(sent: Parameters<typeof serverOf>[0]): McpServer {
  const read = serverOf(sent)
  return 'server' in read ? read.server : failField(read.param, read.message)
}

/** Rules could not tell two of one name apart. In a savepoint: after a refused row PostgreSQL accepts no more statements. */
async function orTaken(db: Tx, write: (tx: Tx) => Promise<void>): Promise<void> {
  try {
    await inSavepoint(db, write)
  } catch (error) {
    if (databaseTroubleOf(error) !== 'duplicate') throw error
    fail('duplicate_resource', {
      param: 'name',
      message: 'There is an MCP server of this name, or of nearly the same.',
      cause: error,
    })
  }
}

function shown({
  id,
  agentRef,
  pluginId,
  name,
  server,
  createdByRef,
  createdAt,
  updatedAt,
}: McpServerRow): McpServerShown {
  const {
    transport,
    url = null,
    headers = {},
    connectionId = null,
    trustSkills = false,
    command = null,
    args = [],
    env = {},
  } = sentOf(server)
  return {
    object: 'mcp_server',
    id,
    agentId: agentRef,
    pluginId,
    name,
    transport,
    url,
    headers,
    connectionId,
    trustSkills,
    command,
    args,
    env,
    createdBy: { type: 'user', id: createdByRef },
    createdAt: toTimestamp(createdAt),
    updatedAt: toTimestamp(updatedAt),
  }
}
