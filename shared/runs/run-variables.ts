import { runVariables } from '../lib/places.ts'
import { harnesses } from './harnesses.ts'
import type { RunSpec } from './spec.ts'

// Names of the variables that svc sets in the environment of a run.

export const agentVariable = 'SVC_AGENT_ID'

/** The variables of an agent that is a command without a protocol: it is told there what a harness is told by its own way. */
export const commandVariables = {
  prompt: 'SVC_PROMPT',
  promptFile: 'SVC_PROMPT_FILE',
  instructionsFile: 'SVC_INSTRUCTIONS_FILE',
} as const

export function runVariableNames({
  harness,
  protocol,
  gate,
}: Pick<RunSpec, 'harness' | 'protocol' | 'gate'>): string[] {
  const isCommand = harnesses[harness].runsOwnCommand && protocol == null && gate == null
  return [...Object.values(runVariables), agentVariable, ...(isCommand ? Object.values(commandVariables) : [])]
}
