import type { ModelCatalog } from './catalog.ts'
import { defaultHarness, harnessByModelName, type HarnessName } from '../../shared/runs/harnesses.ts'

/**
 * The harness an agent runs on: its override, else the one that the catalog names for its model, else one by the
 * model's name. Without an override and a model it is the default harness.
 */
export function harnessOf(override: HarnessName | null, model: string | null, catalog: ModelCatalog): HarnessName {
  if (override) return override
  if (model === null) return defaultHarness
  return catalog.find(model)?.harness ?? harnessByModelName(model)
}
