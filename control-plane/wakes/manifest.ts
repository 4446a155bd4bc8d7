import { mcpLimits, type McpLeftOut } from '../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { Instructions } from './instructions.ts'

/** The setup of a run as clients may read it: names of environment keys and MCP servers, never values. */
export function manifestOf(
  spec: RunSpec,
  {
    instructions,
    secretKeys,
    mcpLeftOut,
  }: { instructions: readonly Instructions[]; secretKeys: readonly string[]; mcpLeftOut: readonly McpLeftOut[] },
): Record<string, unknown> {
  return {
    rules: instructions,
    permissions: spec.permissions,
    envKeys: ['SVC_API_URL', 'SVC_TOKEN', 'SVC_RUN_ID', 'SVC_AGENT_ID', ...secretKeys],
    harness: spec.harness,
    model: spec.model,
    reasoningEffort: spec.reasoningEffort,
    maxTurns: spec.maxTurns,
    folder: spec.folder,
    mcpServers: { given: Object.keys(spec.mcpServers), leftOut: mcpLeftOut.slice(0, mcpLimits.told) },
  }
}
