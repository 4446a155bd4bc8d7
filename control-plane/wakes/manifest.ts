import type { RunSpec } from '../../shared/runs/spec.ts'

/** The setup of a run as clients may read it: names of environment keys, never values. */
export function manifestOf(spec: RunSpec, secretKeys: readonly string[]): Record<string, unknown> {
  return {
    rules: spec.agentMd === '' ? [] : [{ name: 'AGENT.md', text: spec.agentMd }],
    skills: [],
    permissions: spec.permissions,
    envKeys: ['SVC_API_URL', 'SVC_TOKEN', 'SVC_RUN_ID', 'SVC_AGENT_ID', ...secretKeys],
    harness: spec.harness,
    model: spec.model,
    reasoningEffort: spec.reasoningEffort,
    maxTurns: spec.maxTurns,
    folder: spec.folder,
  }
}
