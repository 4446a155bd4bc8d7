import type { PersonUuid } from '../../../shared/lib/ids.ts'
import { text, time } from '../../db/columns.ts'
import { personUuid } from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

// Unfinished sign-ins at the issuer, and the identities of people there.

const attempts = table('oidc_attempts', {
  stateHash: text,
  browserHash: text,
  codeVerifier: text,
  nonce: text,
  expiresAt: time,
})
export type AttemptRow = RowOf<typeof attempts>

export async function insertAttempt(db: Db, attempt: AttemptRow): Promise<void> {
  await attempts.insert(db, attempt)
}

/** Returns an attempt once, and removes it. */
export async function claimAttempt(db: Db, stateHash: string): Promise<AttemptRow | null> {
  const found = await attempts.find(db, { stateHash })
  const isMine = found !== null && (await db('oidc_attempts').where({ state_hash: stateHash }).delete()) === 1
  return isMine ? found : null
}

const identities = table(
  'oidc_identities',
  { issuer: text, subject: text, personUuid, at: time },
  { columns: { personUuid: 'user_id', at: 'created_at' } },
)
type IdentityRow = RowOf<typeof identities>
export type Identity = Pick<IdentityRow, 'issuer' | 'subject'>

export async function findUserOfIdentity(db: Db, { issuer, subject }: Identity): Promise<PersonUuid | null> {
  return (await identities.find(db, { issuer, subject }))?.personUuid ?? null
}

/** Returns whether the person has an identity at the issuer already, under any subject. */
export async function hasIdentity(
  db: Db,
  { issuer, personUuid }: { issuer: string; personUuid: PersonUuid },
): Promise<boolean> {
  return (await db('oidc_identities').where({ issuer, user_id: personUuid }).first('subject')) !== undefined
}

/** Locks the user: others that do the same wait until this transaction ends. */
export async function lockUser(db: Db, personUuid: PersonUuid): Promise<void> {
  await lockRows(db('users').where({ id: personUuid })).first('id')
}

/**
 * Removes identities, so that the person may sign in as another subject; with `issuer` only those at that issuer.
 * Returns their number.
 */
export async function removeIdentities(db: Db, personUuid: PersonUuid, issuer: string | null): Promise<number> {
  return db('oidc_identities')
    .where({ user_id: personUuid, ...(issuer !== null && { issuer }) })
    .delete()
}

/** Does nothing when the identity belongs to somebody already. */
export async function insertIdentity(db: Db, identity: IdentityRow): Promise<void> {
  await db('oidc_identities').insert(identities.toColumns(identity)).onConflict(['issuer', 'subject']).ignore()
}

export async function removeOldAttempts(db: Db, before: number): Promise<void> {
  await db('oidc_attempts').where('expires_at', '<', before).delete()
}
