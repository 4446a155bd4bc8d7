import type { AgentRef } from '../../../shared/lib/ids.ts'
import { fail, failField } from '../../../shared/api/errors.ts'
import type { World } from '../../../shared/lib/world.ts'
import { findServerKey, replaceServerKey, serverKey } from '../../db/server-keys.ts'
import { databaseTroubleOf } from '../../db/dialect.ts'
import type { Knex } from 'knex'
import type { Db, Tx } from '../../db/open.ts'
import type { PersonCaller } from '../../http/callers.ts'
import {
  countOtherSecrets,
  findSecret,
  insertSecret,
  insertSecretGrant,
  isSecretNameTaken,
  type SecretGrantRow,
  type SecretRow,
} from './store.ts'
import { brokeredChars, brokeredValue } from './in-cloud.ts'
import { VaultError, type Vault } from '../../vault/vault.ts'
import { inSavepoint, inTransaction } from '../../db/transaction.ts'

/** Encrypts and stores a secret, and grants it. Fails with `secret.duplicate_name`. */
export async function addSecret(
  { db, caller, world }: { db: Tx; caller: PersonCaller; world: World },
  { vault }: { vault: Vault },
  given: {
    name: string
    provider: string | null
    envVarName: string
    value: string
    /** `agt_` id of an agent to grant it to. */
    agentRef: AgentRef | null
    brokerHosts?: string[]
    isCloudPlain?: boolean
  },
): Promise<SecretRow> {
  const { value, agentRef, brokerHosts = [], isCloudPlain = false, ...fields } = given
  if (brokerHosts.length > 0) checkBrokered(value)
  const param = 'name'
  const { workspaceId, personRef: by } = caller
  if (await isSecretNameTaken(db, workspaceId, fields.name)) fail('secret.duplicate_name', { param })
  const id = world.id('sec_')
  const at = world.now()
  const sealed = vault.seal(id, value)
  await claimSecretsKey(db, vault, at)
  try {
    // The savepoint keeps the transaction usable: after a refused row PostgreSQL accepts no more statements in it.
    await inSavepoint(db, async (tx) =>
      insertSecret(tx, {
        id,
        workspaceId,
        ...fields,
        brokerHosts,
        isCloudPlain,
        sealed,
        createdByRef: by,
        createdAt: at,
      }),
    )
  } catch (error) {
    // The name was free when it was looked up, so another write came in between.
    if (databaseTroubleOf(error) === 'duplicate') fail('secret.duplicate_name', { param, cause: error })
    throw error
  }
  if (agentRef !== null) await grantSecret(db, { secretId: id, agentRef, workspaceId, grantedByRef: by, createdAt: at })
  return (await findSecret(db, workspaceId, id)) ?? fail('secret_not_found')
}

/** Fails with `validation_error` when a broker could not put the value into a header, or not know it in an answer. */
export function checkBrokered(value: string): void {
  if (brokeredValue(value) === null)
    failField(
      'brokerHosts',
      `The broker takes values of ${brokeredChars.least} to ${brokeredChars.most} visible characters in one line, which fit into a header.`,
    )
}

/** The number of secrets of an agent is bounded: all are opened for each of its runs, and looked for in all that it writes. */
const mostOfAgent = 200

/** Fails with `validation_error` when the agent has too many others. */
export async function grantSecret(db: Db, grant: SecretGrantRow): Promise<void> {
  if ((await countOtherSecrets(db, grant)) >= mostOfAgent)
    failField('agentId', `An agent has at most ${mostOfAgent} secrets.`)
  await insertSecretGrant(db, grant)
}

const keyName = 'secrets_key'

/**
 * Checks that this server and the others can open what each of them seals: the first one to seal something says by which key that is, and a
 * server that has another key to seal with has that one to open with. Called after something was sealed: before that there may be no
 * key.
 */
export async function claimSecretsKey(
  db: Db,
  vault: Pick<Vault, 'fingerprint' | 'otherFingerprint'>,
  at: number,
): Promise<void> {
  const own = vault.fingerprint() ?? 'memory'
  const claimed = await serverKey(db, keyName, { value: own, at })
  if (claimed !== own && claimed !== vault.otherFingerprint())
    throw new VaultError('another server of this database seals secrets with another key; set SVC_SECRETS_KEY on both')
}

/**
 * Throws `VaultError` when the secrets of the database were sealed with another key than those of this server. A server that seals with
 * another key than the one before, and opens with that, says so for those that start after it.
 */
export async function checkKey(root: Knex, vault: Vault): Promise<void> {
  const claimed = await findServerKey(root, keyName)
  const own = vault.fingerprint()
  if (claimed === null || claimed === own) return
  if (own !== null && claimed === vault.otherFingerprint())
    return inTransaction(root, (tx) => replaceServerKey(tx, keyName, { before: claimed, after: own }))
  throw new VaultError(
    own === null
      ? 'the key of the secrets in this database is missing: set SVC_SECRETS_KEY, or put the key file back'
      : 'the secrets in this database were sealed with another key than that of SVC_SECRETS_KEY or the key file',
  )
}
