import { variablesOf } from '../../../shared/runs/filled-servers.ts'
import type { McpServer } from '../../../shared/runs/mcp-servers.ts'
import { placeOf } from '../../outbound/host-name.ts'
import type { CloudSecret } from '../secrets/in-cloud.ts'

/** MCP servers on the network in runs of the cloud, where a broker asks them for the run. */

export type RemoteServer = Extract<McpServer, { type: 'http' | 'sse' }>

/**
 * Where the server is, as secrets name hosts; null: that is not known. A variable there would lead what is sent to wherever it says; and
 * hosts are shown.
 */
export function placeOfServer({ url: text }: Pick<RemoteServer, 'url'>): string | null {
  const url = /^https?:\/\/[^/?#\\]*\$\{/i.test(text) ? null : URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  return url.protocol === 'http:' && url.port === '' ? `${placeOf(url)}:80` : placeOf(url)
}

/** Why a broker does not ask it, as far as that is known without asking; null: it does. */
export function whyNotInCloud(server: RemoteServer, secrets: readonly CloudSecret[]): string | null {
  const place = placeOfServer(server)
  if (place === null) return 'in the cloud the host of its address is written out, without variables'
  const names = new Set(variablesOf(server))
  // Who stored a secret said where it may go, if anywhere in particular.
  const kept = secrets.find(
    ({ envVarName, brokerHosts }) => names.has(envVarName) && brokerHosts.length > 0 && !brokerHosts.includes(place),
  )
  return kept === undefined
    ? null
    : `the secret in ${kept.envVarName} is not for ${place} (svc secret update ${kept.id} --broker-hosts)`
}
