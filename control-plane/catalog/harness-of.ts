import type { ModelCatalog } from './catalog.ts'
import type { HarnessName } from '../../shared/runs/spec.ts'

/**
 * The harness an agent runs on: its override, else derived from the model (document 1, "Agent"): by the catalog, or by its
 * name when the catalog does not know it; claude without either.
 */
export function harnessOf(override: HarnessName | null, model: string | null, catalog: ModelCatalog): HarnessName {
  if (override) return override
  if (model === null) return 'claude'
  const known = catalog.find(model)
  if (known) return known.harness
  const name = model.toLowerCase()
  if (/^(anthropic\/)?(claude|opus|sonnet|haiku|fable)/.test(name)) return 'claude'
  if (/^(openai\/)?(gpt|o\d|codex|chatgpt)/.test(name)) return 'codex'
  if (/^(cursor|composer)/.test(name)) return 'cursor'
  // What names a provider is run by the harness that speaks to many.
  if (name.includes('/')) return 'opencode'
  return 'claude'
}
