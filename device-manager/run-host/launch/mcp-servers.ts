import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import { filledServers, type ServerLeftOut } from '../../harness/parts/mcp-servers.ts'
import type { LaunchPlan, Prepared } from '../preparation.ts'
import { environmentOf, type StartRequest } from './launch.ts'

/** The plan of a launch with the workspace's MCP servers, which is made when the run's secrets have come. */
export interface ServedPlan {
  plan: LaunchPlan
  servers: McpServers
  leftOut: readonly ServerLeftOut[]
}

/** Throws what the adapter throws. What it adds to the environment does not depend on the servers. */
export function withServers(parts: { prepared: Prepared; plan: LaunchPlan; start: StartRequest }): ServedPlan {
  const { plan, prepared } = parts
  const { spec } = prepared.assignment
  if (Object.keys(spec.mcpServers).length === 0) return { plan, servers: {}, leftOut: [] }
  const { servers, leftOut } = filledServers(spec.mcpServers, environmentOf(parts))
  const launch = plan.adapter.command(spec, { ...plan.facts, mcpServers: servers })
  return { plan: { ...plan, launch }, servers, leftOut }
}
