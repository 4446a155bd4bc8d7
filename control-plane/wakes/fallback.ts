import { type HarnessName, harnesses, harnessFactsOf } from '../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import { harnessOf } from '../catalog/harness-of.ts'
import { buildSpec, type SpecInput } from './build-spec.ts'

/**
 * The run as it goes on the agent's fallback harness. null: it has none, the run is on it already or runs a command, or it
 * could not hold the mode of the run.
 */
export function fallbackSpecOf(input: SpecInput, own: RunSpec): RunSpec | null {
  const { agent, workspace, catalog, overrides = {} } = input
  const harness = agent.fallbackHarness
  if (harness === null || harness === own.harness || harnesses[own.harness].runsOwnCommand) return null
  if (own.permissions.defaultMode === 'strict' && !harnessFactsOf({ harness }).holdsStrict) return null
  const named = [overrides.model, agent.model, workspace.defaultModel, agent.backupModel, workspace.backupModel]
  const [model = null, backupModel = null] = named.filter((each) => each != null && runsModel(harness, each, catalog))
  return buildSpec({
    ...input,
    agent: { ...agent, model: model ?? null, backupModel: backupModel ?? null },
    workspace: { ...workspace, defaultModel: null, backupModel: null },
    overrides: { ...overrides, harness, model: null },
    prompt: own.resumeSessionId === null ? own.prompt : `${anew}${own.prompt}`,
    resumeSessionId: null,
  })
}

/** Without one of these the harness takes its own default. */
function runsModel(harness: HarnessName, model: string, catalog: ModelCatalog): boolean {
  return harnessOf(null, model, catalog) === harness || (harnesses[harness].takesProviders && model.includes('/'))
}

const anew = `You worked on this before with another agent program. Its session is not here, so begin by finding out what is done.

`
