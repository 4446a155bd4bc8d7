import type { ModelCatalog } from './catalog.ts'
import { defaultHarness, harnessByModelName, type HarnessName } from '../../shared/runs/harnesses.ts'

/**
 * The harness an agent runs on: its override, else derived from the model (document 1, "Agent"): by the catalog, or by its
 * name when the catalog does not know it; the default one without either.
 */
export function harnessOf(override: HarnessName | null, model: string | null, catalog: ModelCatalog): HarnessName {
  if (override) return override
  if (model === null) return defaultHarness
  return catalog.find(model)?.harness ?? harnessByModelName(model)
}
