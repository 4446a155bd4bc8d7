import { harnesses, harnessFactsOf } from '../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { buildSpec, runsModel, type SpecInput } from './build-spec.ts'

/**
 * The run as it goes on the agent's fallback harness. null: it has none, the run is on it already or runs a command, or it
 * could not hold the mode of the run.
 */
export function fallbackSpecOf(input: SpecInput, own: RunSpec): RunSpec | null {
  const { agent, catalog, overrides = {} } = input
  const harness = agent.fallbackHarness
  if (harness === null || harness === own.harness || harnesses[own.harness].runsOwnCommand) return null
  if (own.permissions.defaultMode === 'strict' && !harnessFactsOf({ harness }).holdsStrict) return null
  const model = runsModel(harness, overrides.model, catalog) ? overrides.model! : null
  return buildSpec({
    ...input,
    overrides: { ...overrides, harness, model },
    prompt: own.resumeSessionId === null ? input.prompt : `${anew}${input.prompt}`,
    resumeSessionId: null,
  })
}

const anew = `You worked on this before with another agent program. Its session is not here, so begin by finding out what is done.

`
