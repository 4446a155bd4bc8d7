import type { Knex } from 'knex'
import { brokeredKeys, usualKey, type ModelProvider } from '../../../shared/runs/brokered.ts'
import type { Log } from '../../process/log.ts'
import { readHost } from '../../outbound/host-name.ts'
import { listSpecs } from '../../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import { findSandbox } from '../../resources/sandboxes/store.ts'
import { listSecretsOfAgent } from '../../resources/secrets/store.ts'
import { findWorkspace } from '../../resources/workspaces/store.ts'
import type { Vault } from '../../vault/vault.ts'

/** What the run of a sandbox may reach now. */
export interface Permit {
  /** The provider of its model; `key` null: the key was taken away, or cannot be opened. */
  model: { provider: ModelProvider; url: string; key: ModelKey | null } | null
  /** Hosts, as `readHost` gives them. */
  egress: ReadonlySet<string>
}

export interface ModelKey {
  value: string
  header: 'bearer' | 'x-api-key'
}

export interface PermitSources {
  root: Knex
  vault: Pick<Vault, 'open'>
  log: Log
  models: Readonly<Record<ModelProvider, { url: string; key: string | null }>>
}

/** By what is stored now: a secret that is taken from the agent is of no use from then on. null: the run is over. */
export async function findPermit(sources: PermitSources, sandboxId: string): Promise<Permit | null> {
  const { root, models } = sources
  const sandbox = await findSandbox(root, sandboxId)
  if (sandbox === null || sandbox.removedAt !== null) return null
  const run = await findRun(root, sandbox.runId)
  if (run === null || run.endedAt !== null) return null
  const workspace = await findWorkspace(root, run.workspaceId)
  const model = (await listSpecs(root, [run.id])).get(run.id)?.brokeredModel ?? null
  const hosts = (workspace?.sandboxEgress ?? []).map(readHost).filter((host) => host !== null)
  return {
    egress: new Set(hosts),
    model: model && {
      provider: model.provider,
      url: models[model.provider].url,
      key: await keyOf(sources, run, model.provider),
    },
  }
}

async function keyOf(
  { root, vault, log, models }: PermitSources,
  { id: runId, agentId, providerKeyId }: RunRow,
  provider: ModelProvider,
): Promise<ModelKey | null> {
  if (providerKeyId === null) {
    const value = models[provider].key
    return value === null ? null : { value, header: brokeredKeys[usualKey[provider]]!.header }
  }
  const secret = (await listSecretsOfAgent(root, agentId)).find(({ id }) => id === providerKeyId)
  const known = secret === undefined ? undefined : brokeredKeys[secret.envVarName]
  if (secret === undefined || known?.provider !== provider) return null
  try {
    const value = vault.open(secret.id, secret.sealed).trim()
    // Node refuses what is no value of a header, with an error that would name it.
    return /^[\x21-\x7e]+$/.test(value) ? { value, header: known.header } : null
  } catch (error) {
    log.error({ err: error, runId }, 'the key of a run in a sandbox cannot be opened')
    return null
  }
}
