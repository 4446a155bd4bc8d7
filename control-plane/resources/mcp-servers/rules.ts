import type { ConnectionId } from '../../../shared/lib/ids.ts'
import { mcpServer, type McpServer } from '../../../shared/runs/mcp-servers.ts'
import { mcpServerIntegration } from '../../../shared/api/connection-fields.ts'
import { namesVariable } from '../../../shared/runs/filled-servers.ts'
import type { Service } from '../../catalog/services.ts'
import type { mcpTransports } from '../../../shared/api/mcp-servers.ts'

/** A workspace, and each agent, has so many. A run takes as many in all. */
export const mostServers = 50

interface Sent {
  transport: (typeof mcpTransports)[number]
  url?: string | null | undefined
  headers?: Record<string, string> | undefined
  connectionId?: ConnectionId | null | undefined
  trustSkills?: boolean | undefined
  command?: string | null | undefined
  args?: string[] | undefined
  env?: Record<string, string> | undefined
}

const ofPrograms = ['command', 'args', 'env'] as const
const ofAddresses = ['url', 'headers', 'connectionId', 'trustSkills'] as const

/** The server that was sent, or which field of it does not fit. */
export function serverOf(sent: Sent): { server: McpServer } | { param: string; message: string } {
  const isProgram = sent.transport === 'stdio'
  const strange = (isProgram ? ofAddresses : ofPrograms).find((field) => isSet(sent[field]))
  if (strange !== undefined)
    return { param: strange, message: `A server whose transport is ${sent.transport} has none.` }
  if (sent.transport === 'sse' && isSet(sent.connectionId))
    return { param: 'connectionId', message: 'A server with a connection has the transport http.' }
  // A proxy before a server may lead a request with another Host to another server.
  if (isSet(sent.connectionId) && Object.keys(sent.headers ?? {}).some((name) => name.toLowerCase() === 'host'))
    return { param: 'headers', message: 'A server with a connection is sent its own Host.' }
  const needed = isProgram ? 'command' : 'url'
  if (!isSet(sent[needed]))
    return { param: needed, message: `A server whose transport is ${sent.transport} needs one.` }
  const { transport: type, url, headers, command, args = [], env } = sent
  const connectionId = sent.connectionId ?? undefined
  const trust = sent.trustSkills === true ? { trustSkills: true } : {}
  const remote = { type, url, headers, connectionId, ...trust }
  const read = mcpServer.safeParse(isProgram ? { type, command, args, env } : remote)
  if (read.success) return { server: read.data }
  return { param: needed, message: 'An address begins with http:// or https://, or is made of variables.' }
}

const isSet = (value: unknown): boolean => {
  if (value === undefined || value === null || value === false) return false
  return typeof value !== 'object' || Object.keys(value).length > 0
}

/** The fields of a stored server, as they are sent. */
export const sentOf = (server: McpServer): Sent =>
  server.type === 'stdio'
    ? { transport: 'stdio', command: server.command, args: server.args, env: server.env }
    : {
        transport: server.type,
        url: server.url,
        headers: server.headers,
        connectionId: server.connectionId,
        trustSkills: server.trustSkills,
      }

/** Returns whether agents have the skills that the server offers. */
export const isTrusted = (server: McpServer | null): boolean => server?.type !== 'stdio' && server?.trustSkills === true

/** The address of a server that people can sign in to; null: it is none, or runs alone know it. */
export function addressToSignInTo(server: McpServer): string | null {
  if (server.type !== 'http' || namesVariable(server.url)) return null
  const url = URL.canParse(server.url) ? new URL(server.url) : null
  if (url === null || url.username + url.password !== '') return null
  return Object.keys(server.headers ?? {}).some((name) => name.toLowerCase() === 'host') ? null : server.url
}

/** Returns whether both addresses are of one server. Tenants of a host may differ by the path, or by the query. */
export function isSameServer(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => {
    const url = URL.canParse(text) ? new URL(text) : null
    if (url !== null) url.hash = ''
    return url?.href
  })
  return first !== undefined && first === second
}

/**
 * Returns why the credential of a connection to this service is not sent to the address; null: it is. Whoever names the address would have
 * the credential if it went to any.
 */
export function whyNotSentTo(url: string, service: Service | null): string | null {
  if (service?.mcp === undefined || !service.surfaces.includes('mcp'))
    return 'The catalog has no MCP server of the service of this connection.'
  // A path below such an address may be somebody else's.
  if (service.id.startsWith(mcpServerIntegration))
    return isSameServer(url, service.mcp.url) ? null : `This sign-in is to ${service.mcp.url}, and to no other address.`
  const known = new URL(service.mcp.url)
  const asked = URL.canParse(url) && !url.includes('${') ? new URL(url) : null
  const below = known.pathname.replace(/\/*$/, '/')
  const isSame =
    asked !== null &&
    asked.origin === known.origin &&
    (asked.pathname === known.pathname || asked.pathname.startsWith(below)) &&
    asked.username + asked.password === ''
  return isSame ? null : `A connection to ${service.label} is for ${known.origin}${known.pathname} and what lies below.`
}
