import type { SecretId } from '../../../shared/lib/ids.ts'
import { brokeredKeys, usualKey, type BrokeredModel, type ModelProvider } from '../../../shared/runs/brokered.ts'
import { harnesses, type HarnessName } from '../../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { troubleInSandbox, sandboxDelivery } from '../../resources/secrets/in-cloud.ts'
import type { KeyedSpec, KeyRefusal, Keys } from './place.ts'

/**
 * The key with which a run in a sandbox reaches its model. A key of the agent's own comes before the operator's, which pays for some
 * harnesses alone; neither enters the sandbox.
 */
export type ModelAccess =
  /** The run asks no model by svc. */
  | { kind: 'none' }
  /** `keyId`: of the agent's secret; null: the operator's key. */
  | { kind: 'brokered'; model: BrokeredModel; keyId: SecretId | null }
  | KeyRefusal

export function modelAccess(
  { harness, model, gate }: Pick<RunSpec, 'harness' | 'model' | 'gate'>,
  { secretKeys, operatorKeys }: { secretKeys: ReadonlyMap<string, SecretId>; operatorKeys: readonly ModelProvider[] },
): ModelAccess {
  const { label, models, runsOwnCommand, takesCredits } = harnesses[harness]
  if (models === 'none' || runsOwnCommand || gate != null) return { kind: 'none' }
  const names = variablesOf({ harness, model })
  const own = names.find((name) => secretKeys.has(name))
  if (own !== undefined && brokeredKeys[own] !== undefined)
    return {
      kind: 'brokered',
      model: { provider: brokeredKeys[own].provider, variable: own },
      keyId: secretKeys.get(own)!,
    }
  const provider = names.map((name) => brokeredKeys[name]?.provider).find((one) => one !== undefined)
  if (provider === undefined) {
    const message = `The broker of sandboxes knows no way to a model for ${label}${model === null ? '' : ` with the model ${model}`}.`
    return { kind: 'refused', code: 'credential_unbrokerable', message }
  }
  if (!operatorKeys.includes(provider)) {
    const message = `${label} has no key in the cloud. Give the agent a secret named ${listed(names)}.`
    return { kind: 'refused', code: 'credential_unbrokerable', message }
  }
  if (!takesCredits) {
    const message = `Credits do not pay for ${label}. Give the agent a secret named ${listed(names)}, or another harness.`
    return { kind: 'refused', code: 'credits_harness_unsupported', message }
  }
  return { kind: 'brokered', model: { provider, variable: usualKey[provider] }, keyId: null }
}

/** The variables of keys that the harness takes for this model, the first of them first. */
function variablesOf({ harness, model }: Pick<RunSpec, 'harness' | 'model'>): readonly string[] {
  const { keyNames, takesProviders } = harnesses[harness]
  if (!takesProviders) return keyNames
  const provider = model?.split('/')[0] ?? ''
  return Object.hasOwn(usualKey, provider) ? [usualKey[provider as ModelProvider]] : []
}

const listed = (names: readonly string[]): string => names.join(' or ')

/** See `keyedSpec` of `RunPlace`: neither the agent's key nor the operator's enters, the broker adds it. */
export function brokeredSpec(
  spec: RunSpec,
  { secretKeys, guarded, operatorKeys, isPlaced }: Keys,
): KeyedSpec | KeyRefusal {
  const secrets = guarded ?? []
  const access = modelAccess(spec, { secretKeys, operatorKeys })
  if (access.kind === 'refused' && isPlaced) return access
  const { model: brokeredModel, keyId } = access.kind === 'brokered' ? access : { model: null, keyId: null }
  const next = brokeredModel === null ? spec : { ...spec, brokeredModel }
  const message = troubleInSandbox(secrets, next)
  if (message !== null && isPlaced) return { kind: 'refused', code: 'credential_unbrokerable', message }
  const entering = secrets.filter((secret) => ['plain', 'placeholder'].includes(sandboxDelivery(secret, next)))
  const given = [
    ...(brokeredModel === null ? [] : [brokeredModel.variable]),
    ...entering.map(({ envVarName }) => envVarName),
  ]
  // The operator pays: a key of the agent's in the same variable stays outside.
  const isGiven = (name: string) => given.includes(name) && (name !== brokeredModel?.variable || keyId !== null)
  return { spec: next, keyId, secretNames: { given, leftOut: [...secretKeys.keys()].filter((name) => !isGiven(name)) } }
}

/** The id of the agent's own key that the harness takes on a device. */
export function keyOf(harness: HarnessName, secretKeys: ReadonlyMap<string, SecretId>): SecretId | null {
  const name = harnesses[harness].keyNames.find((each) => secretKeys.has(each))
  return name === undefined ? null : secretKeys.get(name)!
}

/** The variables by which the program of a run in a sandbox signs in to its model, or would. */
export const keysOfHarness = ({ harness, brokeredModel }: Pick<RunSpec, 'harness' | 'brokeredModel'>): string[] => [
  ...harnesses[harness].keyNames,
  ...(brokeredModel == null ? [] : [brokeredModel.variable]),
]
