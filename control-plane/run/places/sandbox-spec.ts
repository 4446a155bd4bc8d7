import { brokerPort } from '../../../shared/device/sandbox.ts'
import { mcpPath } from '../../../shared/runs/brokered.ts'
import { goesThroughBroker } from '../../../shared/runs/filled-servers.ts'
import type { McpServer } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'

/**
 * The spec as a sandbox gets it: MCP servers on the network are addresses of its broker, which alone knows where they are and what they
 * are sent. Variables of connections come with its secrets, as placeholders.
 */
export function specForSandbox(spec: RunSpec): RunSpec {
  const servers = Object.entries(spec.mcpServers).map(([name, server]) => [name, ofBroker(name, server)] as const)
  return { ...spec, mcpServers: Object.fromEntries(servers), connectionVariables: null }
}

function ofBroker(name: string, server: McpServer): McpServer {
  if (!goesThroughBroker(server)) return server
  const { type, trustSkills } = server
  const url = `http://127.0.0.1:${brokerPort}${mcpPath(name)}`
  return { type, url, ...(trustSkills === true && { trustSkills }) }
}
