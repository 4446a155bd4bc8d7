import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { harnessNames, defaultHarness, harnessByModelName, type HarnessName } from '../../shared/runs/harnesses.ts'
import { reasoningEfforts, speeds } from '../../shared/runs/spec.ts'
import { ConfigError } from '../process/config-error.ts'
import builtIn from './models.json' with { type: 'json' }

// The catalog of models: the harness that runs one, the efforts it takes, the price of its tokens. `models.json` holds
// list prices. `SVC_MODELS_FILE` names a file of the same form whose entries are added, or replace those with the same
// id.

/** US dollars per million tokens, as a decimal. */
const price = z.string().regex(/^\d{1,6}(\.\d{1,9})?$/)
const modelPrice = z.strictObject({ input: price, output: price, cacheRead: price, cacheWrite: price })
export type ModelPrice = z.infer<typeof modelPrice>

const name = z.string().min(1).max(200).toLowerCase()
export const modelEntry = z.strictObject({
  id: name,
  /** The other names of the model. */
  aliases: z.array(name).max(20).default([]),
  harness: z.enum(harnessNames),
  /** The reasoning efforts it takes; may be empty. */
  efforts: z.array(z.enum(reasoningEfforts)),
  /** The speeds it offers; left out: the usual one only. */
  speeds: z.array(z.enum(speeds)).optional(),
  /** null: unknown, so its runs are not priced. */
  price: modelPrice.nullable(),
})
export type ModelEntry = z.infer<typeof modelEntry>

export const modelsFile = z.strictObject({ models: z.array(modelEntry).max(2_000) })

export interface ModelCatalog {
  /** Finds a model by id or alias. A date at the end and the provider in front are optional. */
  find(model: string): ModelEntry | null
}

export function createCatalog(entries: readonly ModelEntry[]): ModelCatalog {
  const byName = new Map<string, ModelEntry>()
  for (const entry of entries) for (const alias of entry.aliases) byName.set(alias, entry)
  // An id wins over an alias of the same name, and a later entry over an earlier one.
  for (const entry of entries) byName.set(entry.id, entry)
  return {
    find(model) {
      for (const candidate of spellings(model.toLowerCase())) {
        const found = byName.get(candidate)
        if (found) return found
      }
      return null
    },
  }
}

/**
 * The spellings to try, the given one first. `claude-opus-4-5-20251101`, `claude-opus-4-5@20251101` and
 * `anthropic/claude-opus-4-5[1m]` are one model.
 */
function spellings(model: string): string[] {
  const bare = model.replace(/\[[^\]]*\]$/, '')
  const dateless = bare.replace(/[-@](\d{8}|\d{4}-\d{2}-\d{2})$/, '')
  const known = [model, bare, dateless]
  return [...new Set([...known, ...known.map((spelling) => spelling.replace(/^(anthropic|openai|cursor)\//, ''))])]
}

/** The models of the server and those of the operator's file. Throws ConfigError with a sentence. */
export function loadCatalog(file: string | null): ModelCatalog {
  const { models } = modelsFile.parse(builtIn)
  return createCatalog(file === null ? models : [...models, ...readModels(file)])
}

function readModels(file: string): ModelEntry[] {
  try {
    return modelsFile.parse(JSON.parse(readFileSync(file, 'utf8'))).models
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message
    throw new ConfigError(`SVC_MODELS_FILE: ${file} cannot be used.\n${why}`)
  }
}

/**
 * The harness an agent runs on: its override, else the one that the catalog names for its model, else one by the
 * model's name. Without an override and a model it is the default harness.
 */
export function chooseHarness(override: HarnessName | null, model: string | null, catalog: ModelCatalog): HarnessName {
  if (override) return override
  if (model === null) return defaultHarness
  return catalog.find(model)?.harness ?? harnessByModelName(model)
}
