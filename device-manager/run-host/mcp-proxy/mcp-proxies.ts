import type { ConnectionId } from '../../../shared/lib/ids.ts'
import { Redactor, type SecretValue } from '../../../shared/lib/redact.ts'
import type { McpServer, McpServers } from '../../../shared/runs/mcp-servers.ts'
import { namesVariable, serverVariables, type ServerLeftOut } from '../../../shared/runs/filled-servers.ts'
import { leadsToBroker } from '../../harness/parts/broker-way.ts'
import { messageOf, type HostLog } from '../../log/host-log.ts'
import { brokerCredential, throughBroker } from './broker.ts'
import type { Connections } from './connections.ts'
import type { Credential } from './credential.ts'
import { McpProxy } from './mcp-proxy.ts'
import { upstreamBy } from './upstream.ts'

type RemoteServer = Extract<McpServer, { type: 'http' | 'sse' }>

/** The server takes a credential that the harness must not have: the proxy adds it, or in a sandbox the broker. */
const holdsCredential = (server: McpServer): server is RemoteServer =>
  server.type !== 'stdio' &&
  (leadsToBroker(server.url) ||
    server.connectionId !== undefined ||
    [server.url, ...Object.values(server.headers ?? {})].some(namesVariable))

/** The proxies of one run: one for each server on the network that is given a credential. */
export interface McpProxies {
  /**
   * Has the proxies lead to the servers. Returns the servers as the harness gets them, with addresses of proxies, and those
   * for which there is no proxy.
   */
  lead(
    filled: McpServers,
    given: { spec: McpServers; secrets: Readonly<Record<string, string>>; env: Readonly<Record<string, string>> },
  ): { servers: Record<string, McpServer>; leftOut: ServerLeftOut[] }
  close(): void
}

/** Opens the proxies before the run starts, which then waits for nothing. */
export async function openMcpProxies(
  servers: McpServers,
  { log, connections }: { log: HostLog; connections: Connections },
): Promise<McpProxies> {
  const proxies = new Map<string, McpProxy | null>()
  const wanted = Object.entries(servers).filter(([, server]) => holdsCredential(server))
  await Promise.all(wanted.map(async ([name]) => proxies.set(name, await proxyOrNull(name, log))))
  return {
    lead(filled, { spec, secrets, env }) {
      const given: Record<string, McpServer> = { ...filled }
      const leftOut: ServerLeftOut[] = []
      for (const [name, proxy] of proxies) {
        const server = filled[name]
        if (server === undefined || server.type === 'stdio') {
          proxy?.close()
          continue
        }
        delete given[name]
        if (proxy === null) {
          leftOut.push({ name, why: 'this machine had no port for the door by which its credential is added' })
          continue
        }
        const { type, url, headers = {} } = server
        const { connectionId, trustSkills } = spec[name] as RemoteServer
        const redactor = new Redactor(secretsIn(spec[name], secrets))
        if (connectionId !== undefined) connections.teach(redactor)
        const target = { url: new URL(url), isSse: type === 'sse', trustsSkills: trustSkills === true, redactor }
        const upstream = upstreamBy(env)
        proxy.lead(
          leadsToBroker(url)
            ? { ...target, credential: brokerCredential, upstream: throughBroker(upstream) }
            : { ...target, credential: credentialOf({ connectionId, headers }, connections), upstream },
        )
        given[name] = { type, url: proxy.address }
      }
      return { servers: given, leftOut }
    },
    close() {
      connections.close()
      for (const proxy of proxies.values()) proxy?.close()
    },
  }
}

const credentialOf = (
  { connectionId, headers }: { connectionId: ConnectionId | undefined; headers: Readonly<Record<string, string>> },
  connections: Connections,
): Credential =>
  connectionId === undefined
    ? { headers: () => Promise.resolve(headers) }
    : connections.credential(connectionId, headers)

async function proxyOrNull(name: string, log: HostLog): Promise<McpProxy | null> {
  try {
    return await McpProxy.listen(name, log)
  } catch (error) {
    log('mcp_door_not_opened', { server: name, error: messageOf(error) })
    return null
  }
}

const secretsIn = (server: McpServer | undefined, secrets: Readonly<Record<string, string>>): SecretValue[] =>
  server === undefined
    ? []
    : serverVariables(server).flatMap((name) => {
        const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined
        return value === undefined ? [] : [{ name, value }]
      })
