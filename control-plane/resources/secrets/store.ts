import type { AgentRef, PersonRef, SecretId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { steersPrograms } from '../../../shared/lib/env-names.ts'
import { flag, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { agentRef, personRef, secretId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import type { RunRow } from '../runs/store.ts'
import type { Vault } from '../../vault/vault.ts'

const secrets = table(
  'secrets',
  {
    /** `sec_...` */
    id: secretId,
    workspaceId: workspaceUuid,
    name: text,
    provider: nullableText,
    /** The variable under which agents get it. */
    envVarName: text,
    sealed: z.instanceof(Uint8Array).transform((bytes): Buffer => Buffer.from(bytes)),
    /** Towards them the broker of a sandbox puts the value in place of a placeholder. */
    brokerHosts: json(z.array(z.string())),
    /** Sandboxes get the value itself. */
    isCloudPlain: flag,
    /** `usr_...` */
    createdByRef: personRef,
    lastRevealedByRef: personRef.nullable(),
    lastRevealedAt: nullableTime,
    createdAt: time,
  },
  { columns: { createdByRef: 'created_by', lastRevealedByRef: 'last_revealed_by' } },
)
export type SecretRow = RowOf<typeof secrets>

/** Throws the database's unique violation when the name is taken in the workspace. */
export async function insertSecret(
  db: Db,
  secret: Omit<SecretRow, 'lastRevealedByRef' | 'lastRevealedAt'>,
): Promise<void> {
  await secrets.insert(db, secret)
}

export async function findSecret(db: Db, workspaceId: WorkspaceUuid, id: SecretId): Promise<SecretRow | null> {
  return secrets.find(db, { workspaceId, id })
}

export async function isSecretNameTaken(db: Db, workspaceId: WorkspaceUuid, name: string): Promise<boolean> {
  return (await db('secrets').where({ workspace_id: workspaceId, name }).first('id')) !== undefined
}

/** Lists secrets newest first; returns one row more than `limit`. */
export async function listSecrets(db: Db, filter: OlderPage & { workspaceId: WorkspaceUuid }): Promise<SecretRow[]> {
  return secrets.list(newestFirst(secrets.from(db).where({ workspace_id: filter.workspaceId }), filter))
}

export async function recordReveal(db: Db, reveal: { secretId: SecretId; by: PersonRef; at: number }): Promise<void> {
  await secrets.update(db, { id: reveal.secretId }, { lastRevealedByRef: reveal.by, lastRevealedAt: reveal.at })
}

/** Changes how sandboxes get it. */
export async function replaceCloudUse(
  db: Db,
  secretId: SecretId,
  use: Partial<Pick<SecretRow, 'brokerHosts' | 'isCloudPlain'>>,
): Promise<void> {
  if (Object.keys(use).length > 0) await secrets.update(db, { id: secretId }, use)
}

/** Removes a secret with its grants; runs that have it keep it until they end. */
export async function removeSecret(db: Db, secretId: SecretId): Promise<void> {
  await db('secret_grants').where({ secret_id: secretId }).delete()
  await db('secrets').where({ id: secretId }).delete()
}

const grants = table(
  'secret_grants',
  {
    secretId,
    agentRef,
    workspaceId: workspaceUuid,
    grantedByRef: personRef,
    createdAt: time,
  },
  { columns: { agentRef: 'agent_id', grantedByRef: 'granted_by' } },
)

export type SecretGrantRow = RowOf<typeof grants>

/** Grants a secret; an existing grant stays. */
export async function insertSecretGrant(db: Db, grant: RowOf<typeof grants>): Promise<void> {
  await db('secret_grants').insert(grants.toColumns(grant)).onConflict(['secret_id', 'agent_id']).ignore()
}

export async function removeSecretGrant(db: Db, secretId: SecretId, agentRef: AgentRef): Promise<boolean> {
  return (await db('secret_grants').where({ secret_id: secretId, agent_id: agentRef }).delete()) === 1
}

const ofSecrets = grants.query('where secret_id in ? order by created_at, agent_id')

/** The ids of the agents that have each secret, first granted first. */
export async function listGranteesOf(db: Db, secretIds: readonly SecretId[]): Promise<Map<SecretId, AgentRef[]>> {
  const grantees = new Map<SecretId, AgentRef[]>(secretIds.map((id) => [id, []]))
  if (secretIds.length === 0) return grantees
  for (const { secretId, agentRef } of await ofSecrets.list(db, [secretIds])) grantees.get(secretId)?.push(agentRef)
  return grantees
}

/** The secrets of an agent beside this one. */
export async function countOtherSecrets(db: Db, of: { agentRef: AgentRef; secretId: SecretId }): Promise<number> {
  return countOf(db('secret_grants').where({ agent_id: of.agentRef }).whereNot({ secret_id: of.secretId }))
}

/** Lists the secrets of an agent, oldest first. */
export async function listSecretsOfAgent(db: Db, agentRef: AgentRef): Promise<SecretRow[]> {
  return secrets.list(
    db('secrets')
      .join('secret_grants', 'secret_grants.secret_id', 'secrets.id')
      .where({ 'secret_grants.agent_id': agentRef })
      .orderBy(['secrets.created_at', 'secrets.id'])
      .select(secrets.fields('secrets')),
  )
}

const keysOfAgent = query(
  `select secrets.env_var_name, secrets.id from secrets
   inner join secret_grants on secret_grants.secret_id = secrets.id
   where secret_grants.agent_id = ? order by secrets.env_var_name, secrets.created_at, secrets.id`,
  z.object({ env_var_name: text, id: secretId }),
)

/** The variables of an agent's secrets, in the order of their names, with the ids (`sec_`) of the secrets that they hold. */
export async function listSecretKeys(db: Db, agentRef: AgentRef): Promise<Map<string, SecretId>> {
  const keys = await keysOfAgent.list(db, [agentRef])
  // The last one of several with one name is given, as in `secretsForRun`.
  return new Map(keys.filter((key) => !steersPrograms(key.env_var_name)).map((key) => [key.env_var_name, key.id]))
}

const named = secrets.query('where workspace_id = ? and env_var_name in ? order by created_at, id')

/**
 * The values of secrets of a workspace by their variables, whoever has them. Of several with one variable the last one is given. Throws
 * `VaultError` when they were sealed with another key.
 */
export async function secretsOfWorkspace(
  db: Db,
  { workspaceId, names }: { workspaceId: WorkspaceUuid; names: readonly string[] },
  vault: Pick<Vault, 'open'>,
): Promise<Record<string, string>> {
  const all = names.length === 0 ? [] : await named.list(db, [workspaceId, [...names]])
  const usable = all.filter(({ envVarName }) => !steersPrograms(envVarName))
  return Object.fromEntries(usable.map(({ id, envVarName, sealed }) => [envVarName, vault.open(id, sealed)]))
}

/**
 * The values of the secrets of the run's agent, by the name of their variable. They go to the device with `run.start`,
 * which redacts them. Throws `VaultError` when they were sealed with another key.
 */
export async function secretsForRun(
  db: Db,
  run: Pick<RunRow, 'agentRef'>,
  vault: Pick<Vault, 'open'>,
): Promise<Record<string, string>> {
  const all = await listSecretsOfAgent(db, run.agentRef)
  // Secrets with such names were stored before these were refused.
  const secrets = all.filter(({ envVarName }) => !steersPrograms(envVarName))
  return Object.fromEntries(secrets.map(({ id, envVarName, sealed }) => [envVarName, vault.open(id, sealed)]))
}
