import { fail } from '../../../shared/api/errors.ts'
import { type HarnessName, harnesses } from '../../../shared/runs/harnesses.ts'
import type { RunSpec, Speed } from '../../../shared/runs/spec.ts'
import type { ModelCatalog } from '../../catalog/catalog.ts'
import type { ReadyWake } from '../../run/wakes/wake.ts'
import type { ConversationRow } from './store.ts'

/** The settings that people chose for the runs in a conversation; null: the agent's own. */
export interface Runtime {
  modelId: string | null
  harness: HarnessName | null
  reasoningEffort: RunSpec['reasoningEffort']
  speed: Speed | null
}

/**
 * Checks that the choices fit together. `agentModels`: the models of the conversation's agents without a choice. Fails
 * with `model_not_found`, `harness_model_unsupported`, `reasoning_effort_unsupported`, `speed_unsupported`.
 */
export function checkRuntime(runtime: Runtime, agentModels: readonly string[], catalog: ModelCatalog): void {
  const { modelId, harness, reasoningEffort, speed } = runtime
  if (modelId !== null && catalog.find(modelId) === null) fail('model_not_found', { param: 'modelId' })
  for (const name of modelId === null ? agentModels : [modelId]) {
    const model = catalog.find(name)
    // An agent's own model that is not in the catalog is unknown, so only a speed can be refused.
    if (model === null) continue
    if (harness !== null && harness !== model.harness && harnesses[harness].models === 'own')
      fail('harness_model_unsupported', { param: 'harness', allowedValues: [model.harness] })
    if (reasoningEffort !== null && !model.efforts.includes(reasoningEffort))
      fail('reasoning_effort_unsupported', { param: 'reasoningEffort', allowedValues: model.efforts })
  }
  if (speed === null || speed === 'standard') return
  const speeds = (modelId === null ? agentModels : [modelId]).map((name) => catalog.find(name)?.speeds ?? [])
  if (speeds.length === 0 || speeds.some((each) => !each.includes(speed)))
    fail('speed_unsupported', { param: 'speed', allowedValues: ['standard'] })
}

/** The settings with which runs in a conversation start; a change of them begins a fresh session. */
export function runtimeOf(conversation: ConversationRow | null): Pick<ReadyWake, 'overrides' | 'freshSince'> {
  if (conversation === null) return {}
  const { modelId: model, harness, reasoningEffort, speed } = conversation
  return { overrides: { model, harness, reasoningEffort, speed }, freshSince: conversation.runtimeChangedAt }
}
