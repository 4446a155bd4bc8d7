import { serverVariables } from '../../../shared/runs/filled-servers.ts'
import type { McpServer } from '../../../shared/runs/mcp-servers.ts'
import { hostWithPort } from '../../outbound/host-name.ts'
import type { CloudSecret } from '../secrets/in-cloud.ts'

// MCP servers on the network in runs of the cloud, where a broker asks them for the run.

export type RemoteServer = Extract<McpServer, { type: 'http' | 'sse' }>

/**
 * The host of the server, in the form in which secrets name hosts; null: it is not known. A variable there would decide to whom
 * credentials are sent, and hosts are shown to people.
 */
export function placeOfServer({ url: text }: Pick<RemoteServer, 'url'>): string | null {
  const url = /^https?:\/\/[^/?#\\]*\$\{/i.test(text) ? null : URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  return url.protocol === 'http:' && url.port === '' ? `${hostWithPort(url)}:80` : hostWithPort(url)
}

/** Returns why a broker does not ask the server, as far as its settings tell; null: it asks. */
export function whyNotInCloud(server: RemoteServer, secrets: readonly CloudSecret[]): string | null {
  const place = placeOfServer(server)
  if (place === null) return 'in the cloud the host of its address is written out, without variables'
  const names = new Set(serverVariables(server))
  // A secret that names hosts goes to these alone.
  const kept = secrets.find(
    ({ envVarName, brokerHosts }) => names.has(envVarName) && brokerHosts.length > 0 && !brokerHosts.includes(place),
  )
  return kept === undefined
    ? null
    : `the secret in ${kept.envVarName} is not for ${place} (svc secret update ${kept.id} --broker-hosts)`
}
