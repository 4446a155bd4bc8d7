import type { AgentRef } from '../../../shared/lib/ids.ts'
import { createHmac } from 'node:crypto'
import { steersPrograms } from '../../../shared/lib/env-names.ts'
import type { World } from '../../../shared/lib/world.ts'
import { isKnownToBroker } from '../../../shared/runs/brokered.ts'
import { connectionVariablesOf } from '../../../shared/runs/connection-variables.ts'
import { goesThroughBroker, serverVariables } from '../../../shared/runs/filled-servers.ts'
import { harnesses } from '../../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { Db } from '../../db/open.ts'
import { randomServerKey } from '../../db/server-keys.ts'
import { VaultError, type Vault } from '../../vault/vault.ts'
import type { RunRow } from '../runs/store.ts'
import { listSecretsOfAgent, type SecretRow } from './store.ts'

// The secrets of an agent as a run in a sandbox gets them. Only those that an admin marked as plain enter. In place of one that names hosts the
// run has a placeholder, which its broker replaces towards these hosts.

export type CloudSecret = Pick<SecretRow, 'id' | 'name' | 'envVarName' | 'brokerHosts' | 'isCloudPlain'>

export type SandboxDelivery =
  | 'plain'
  | 'placeholder'
  /** The harness signs in to the model with it, or would: what the harness gets in place of the key, its spec says. */
  | 'model_key'
  /** The broker adds it where it is needed. */
  | 'outside'
  /** The secret has no way into the sandbox. */
  | 'none'

/** The parts of a spec that decide how the run's secrets get into its sandbox. */
export type DeliverySpec = Pick<RunSpec, 'harness' | 'brokeredModel' | 'mcpServers'>

export function sandboxDelivery(secret: CloudSecret, spec: DeliverySpec): SandboxDelivery {
  const { envVarName: name, brokerHosts, isCloudPlain } = secret
  const { harness, brokeredModel, mcpServers } = spec
  const isOfHarness = brokeredModel?.variable === name || harnesses[harness].keyNames.includes(name)
  if (brokeredModel != null && isOfHarness) return 'model_key'
  if (isCloudPlain) return 'plain'
  if (brokerHosts.length > 0) return 'placeholder'
  // Whoever set the server decided where the secret goes.
  const isOfServer = Object.values(mcpServers).some(
    (server) => goesThroughBroker(server) && serverVariables(server).includes(name),
  )
  return isOfServer || isKnownToBroker(name) ? 'outside' : 'none'
}

/** The secrets of an agent, one for each variable: of several the last one is given. */
export async function listCloudSecrets(db: Db, agentRef: AgentRef): Promise<SecretRow[]> {
  const all = await listSecretsOfAgent(db, agentRef)
  const usable = all.filter(({ envVarName }) => !steersPrograms(envVarName))
  return [...new Map(usable.map((secret) => [secret.envVarName, secret])).values()]
}

/** Shorter ones would be found everywhere in answers; longer ones fit into no header. */
export const brokeredChars = { least: 8, most: 4_096 } as const

/** The value as it stands in a header; null: it cannot. */
export function brokeredValue(value: string): string | null {
  const trimmed = value.trim()
  const isInRange = trimmed.length >= brokeredChars.least && trimmed.length <= brokeredChars.most
  return isInRange && /^[\x20-\x7e]+$/.test(trimmed) ? trimmed : null
}

/** The form of the text that stands in place of a value. */
export const placeholderForm = /brokered-[0-9a-f]{40}/g

/** The placeholder of one secret or variable in one run, the same on all replicas. Nobody can make one without the key. */
const placeholderOf = (key: Uint8Array, run: Pick<RunRow, 'id'>, of: { id: string }): string =>
  `brokered-${createHmac('sha256', key).update(`${run.id} ${of.id}`).digest('hex').slice(0, 40)}`

const ofVariable = (name: string) => ({ id: `variable ${name}` })

/** The placeholders that a run has for variables of connections. */
export async function placeholdersOfVariables(
  db: Db,
  { run, names, world }: { run: Pick<RunRow, 'id'>; names: readonly string[]; world: Opening['world'] },
): Promise<Map<string, string>> {
  if (names.length === 0) return new Map()
  const key = await keyOfPlaceholders(db, world)
  return new Map(names.map((name) => [name, placeholderOf(key, run, ofVariable(name))]))
}

const keyOfPlaceholders = (db: Db, world: Pick<World, 'bytes' | 'now'>) =>
  randomServerKey(db, 'secret_placeholders', world)

interface CloudRun {
  run: Pick<RunRow, 'id' | 'agentRef'>
  spec: DeliverySpec & Pick<RunSpec, 'connectionVariables'>
}

interface Opening {
  vault: Pick<Vault, 'open'>
  world: Pick<World, 'bytes' | 'now'>
}

/** Returns what a run in a sandbox has in its environment, by variables. Throws `VaultError` as `secretsForRun`. */
export async function secretsForSandbox(
  db: Db,
  { run, spec }: CloudRun,
  { vault, world }: Opening,
): Promise<Record<string, string>> {
  const names = connectionVariablesOf(spec)
  const ofConnections = Object.fromEntries(await placeholdersOfVariables(db, { run, names, world }))
  const secrets = await listCloudSecrets(db, run.agentRef)
  if (secrets.length === 0) return ofConnections
  const key = await keyOfPlaceholders(db, world)
  const given = secrets.flatMap((secret) => {
    const way = sandboxDelivery(secret, spec)
    if (way === 'placeholder') return [[secret.envVarName, placeholderOf(key, run, secret)]]
    return way === 'plain' ? [[secret.envVarName, vault.open(secret.id, secret.sealed)]] : []
  })
  return { ...ofConnections, ...(Object.fromEntries(given) as Record<string, string>) }
}

/** A secret, or a variable of a connection, that the broker of a run replaces. */
export interface BrokeredSecret {
  /** The variable in the run's environment. */
  name: string
  placeholder: string
  /** null: it cannot be opened, or stands in no header. */
  value: string | null
  /** Set for a variable of a connection: resolves with its value, renewed where that is needed. Fails with ConnectionUnusable. */
  renewed?: () => Promise<string | null>
  /** The hosts towards which it is replaced, with a port where that is not 443. */
  hosts: ReadonlySet<string>
}

export async function listBrokeredSecrets(
  db: Db,
  { run, spec }: CloudRun,
  { vault, world }: Opening,
): Promise<BrokeredSecret[]> {
  const secrets = await listCloudSecrets(db, run.agentRef)
  const brokered = secrets.filter((secret) => sandboxDelivery(secret, spec) === 'placeholder')
  if (brokered.length === 0) return []
  const key = await keyOfPlaceholders(db, world)
  return brokered.map((secret) => ({
    name: secret.envVarName,
    placeholder: placeholderOf(key, run, secret),
    value: openedValue(secret, vault),
    hosts: new Set(secret.brokerHosts),
  }))
}

function openedValue(secret: SecretRow, vault: Pick<Vault, 'open'>): string | null {
  try {
    return brokeredValue(vault.open(secret.id, secret.sealed))
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
    return null
  }
}

const mostNamed = 3

/** Returns why a run may not go into a sandbox with these secrets; null: it may. */
export function troubleInSandbox(secrets: readonly CloudSecret[], spec: DeliverySpec): string | null {
  const without = secrets.filter((secret) => sandboxDelivery(secret, spec) === 'none')
  const [first] = without
  if (first === undefined) return null
  const names = without.slice(0, mostNamed).map(({ name, envVarName }) => `${name} (${envVarName})`)
  const others = without.length > mostNamed ? ` and ${without.length - mostNamed} more` : ''
  return [
    `No broker knows for which hosts the agent's ${without.length === 1 ? 'secret' : 'secrets'} ${names.join(', ')}${others} may be used, so no run in the cloud has it.`,
    `Name them: svc secret update ${first.id} --broker-hosts api.example.com.`,
    'Or take the secret from the agent, or have a workspace admin let the value itself in (--cloud-plain).',
  ].join(' ')
}
