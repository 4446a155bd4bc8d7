import type { SandboxId } from '../../../shared/lib/ids.ts'
import { brokeredKeys, usualKey, type ModelProvider } from '../../../shared/runs/brokered.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { readHost } from '../../outbound/host-name.ts'
import { findAgent } from '../../resources/agents/store.ts'
import type { SpecOwner } from '../../resources/connections/for-specs.ts'
import { listBrokeredVariables } from '../../resources/connections/in-cloud.ts'
import type { RenewalDependencies } from '../../resources/connections/renewal.ts'
import { listSpecs } from '../../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import { findSandbox } from '../../resources/sandboxes/store.ts'
import { listBrokeredSecrets, type BrokeredSecret } from '../../resources/secrets/in-cloud.ts'
import { listSecretsOfAgent, type SecretRow } from '../../resources/secrets/store.ts'
import { findWorkspace } from '../../resources/workspaces/store.ts'
import { findRepoPermit, type RepoPermit, type RepoSourcesOfKeys } from './repo-access.ts'
import { serverPermits, type ServerPermit } from './server-access.ts'

/** The hosts, services and secrets that the run of a sandbox may reach now. */
export interface Permit {
  /** The provider of its model; `key` null: the key was taken away, or cannot be opened. */
  model: { provider: ModelProvider; url: string; key: ModelKey | null } | null
  /** Hosts, as `readHost` gives them. */
  egress: ReadonlySet<string>
  /** The run's repository; null: it has none, or that is not in the workspace any more. */
  repo: RepoPermit | null
  /** Secrets for which the run has placeholders. */
  secrets: readonly BrokeredSecret[]
  /** MCP servers on the network. */
  servers: readonly ServerPermit[]
}

export interface ModelKey {
  value: string
  header: 'bearer' | 'x-api-key'
}

export interface PermitSources extends RenewalDependencies, Pick<RepoSourcesOfKeys, 'gitHost'> {
  models: Readonly<Record<ModelProvider, { url: string; key: string | null }>>
}

/**
 * Finds what the run may reach by what is stored now: a secret that is taken from the agent is of no use from then on. null: the run is
 * over, and its sandbox has nothing to rescue.
 */
export async function findPermit(sources: PermitSources, sandboxId: SandboxId): Promise<Permit | null> {
  const { root } = sources
  const sandbox = await findSandbox(root, sandboxId)
  if (sandbox === null || sandbox.removedAt !== null) return null
  const run = await findRun(root, sandbox.runId)
  if (run === null) return null
  const spec = (await listSpecs(root, [run.id])).get(run.id)
  const secretOf = (of: RunRow, names: readonly string[]) => secretNamed(sources, of, names)
  const repo = spec?.repo == null ? null : await findRepoPermit({ ...sources, secretOf }, run, spec.repo)
  if (run.endedAt !== null) return repo && { model: null, egress: new Set(), repo, secrets: [], servers: [] }
  const workspace = await findWorkspace(root, run.workspaceId)
  const hosts = (workspace?.sandboxEgress ?? []).map(readHost).filter((host) => host !== null)
  const agent = await findAgent(root, run.agentRef)
  const added = spec === undefined || agent === null ? noneAdded : await addedFor(sources, { run, spec, agent })
  return { egress: new Set(hosts), model: await modelOf(sources, run, spec), repo, ...added }
}

const noneAdded: Pick<Permit, 'secrets' | 'servers'> = { secrets: [], servers: [] }

async function addedFor(
  sources: PermitSources,
  of: SpecOwner & { run: RunRow },
): Promise<Pick<Permit, 'secrets' | 'servers'>> {
  const variables = await listBrokeredVariables(sources, of)
  const secrets = await listBrokeredSecrets(sources.root, of, sources)
  return { secrets: [...secrets, ...variables], servers: serverPermits(sources, { ...of, variables }) }
}

async function modelOf(sources: PermitSources, run: RunRow, spec: RunSpec | undefined): Promise<Permit['model']> {
  const { provider } = spec?.brokeredModel ?? {}
  if (provider === undefined) return null
  return { provider, url: sources.models[provider].url, key: await keyOf(sources, run, provider) }
}

async function keyOf(sources: PermitSources, run: RunRow, provider: ModelProvider): Promise<ModelKey | null> {
  const { providerKeyId } = run
  if (providerKeyId === null) {
    const value = sources.models[provider].key
    return value === null ? null : { value, header: brokeredKeys[usualKey[provider]]!.header }
  }
  const secret = (await listSecretsOfAgent(sources.root, run.agentRef)).find(({ id }) => id === providerKeyId)
  const known = secret === undefined ? undefined : brokeredKeys[secret.envVarName]
  if (secret === undefined || known?.provider !== provider) return null
  const value = opened(sources, run, secret)
  return value === null ? null : { value, header: known.header }
}

async function secretNamed(sources: PermitSources, run: RunRow, names: readonly string[]): Promise<string | null> {
  const secrets = await listSecretsOfAgent(sources.root, run.agentRef)
  const found = names
    .map((name) => secrets.find(({ envVarName }) => envVarName === name))
    .find((one) => one !== undefined)
  return found === undefined ? null : opened(sources, run, found)
}

/** Opens the secret; null: it cannot be opened, or is no value of a header. */
function opened(
  { vault, log }: PermitSources,
  { id: runId }: RunRow,
  secret: Pick<SecretRow, 'id' | 'sealed'>,
): string | null {
  try {
    const value = vault.open(secret.id, secret.sealed).trim()
    // Node refuses what is no value of a header, with an error that would name it.
    return /^[\x21-\x7e]+$/.test(value) ? value : null
  } catch (error) {
    log.error({ err: error, runId }, 'a secret for a run in a sandbox cannot be opened')
    return null
  }
}
