import type { RunSpec } from '../../../shared/runs/spec.ts'

/**
 * The prompt for a harness that has no place for instructions of its own: they go before the first prompt of a session, which
 * keeps them.
 */
export function promptWithInstructions({
  agentMd,
  prompt,
  resumeSessionId,
}: Pick<RunSpec, 'agentMd' | 'prompt' | 'resumeSessionId'>): string[] {
  if (resumeSessionId !== null || agentMd.trim() === '') return [prompt]
  return [`<instructions from="svc">\n${agentMd}\n</instructions>`, prompt]
}
