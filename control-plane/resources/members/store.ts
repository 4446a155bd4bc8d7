import type { PersonRef, PersonUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { countOf, cellOf } from '../../db/reads.ts'
import { z } from 'zod'
import type { Db } from '../../db/open.ts'
import { nullableTime, text, time } from '../../db/columns.ts'
import { personRef, personUuid, workspaceUuid } from '../../db/id-columns.ts'
import { query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

export const roles = ['owner', 'admin', 'member'] as const
export type Role = (typeof roles)[number]

const users = table('users', { id: personUuid, publicId: personRef, name: text, email: text, createdAt: time })
export type UserRow = RowOf<typeof users>

/** Throws the database's unique violation when the address is known. */
export async function insertUser(db: Db, user: UserRow): Promise<void> {
  await users.insert(db, user)
}

export async function findUser(db: Db, id: PersonUuid): Promise<UserRow | null> {
  return users.find(db, { id })
}

const byIds = users.query('where id in ?')

export async function listUsersByIds(db: Db, ids: readonly PersonUuid[]): Promise<UserRow[]> {
  return ids.length === 0 ? [] : byIds.list(db, [ids])
}

export async function findUserByPublicId(db: Db, publicId: PersonRef): Promise<UserRow | null> {
  return users.find(db, { publicId })
}

export async function findUserByEmail(db: Db, email: string): Promise<UserRow | null> {
  return users.find(db, { email: email.toLowerCase() })
}

export async function countUsers(db: Db): Promise<number> {
  return countOf(db('users'))
}

/** Makes a person a member; a present member keeps the row and gets the role. */
export async function replaceMember(
  db: Db,
  member: { workspaceId: WorkspaceUuid; personUuid: PersonUuid; role: Role; at: number },
): Promise<void> {
  await db('members')
    .insert({ workspace_id: member.workspaceId, user_id: member.personUuid, role: member.role, created_at: member.at })
    .onConflict(['workspace_id', 'user_id'])
    .merge(['role'])
}

const joined = z.object({ role: z.enum(roles), joinedAt: time })
export type MemberRow = UserRow & z.infer<typeof joined>

/** Lists members, first joined first. */
export async function listMembers(db: Db, workspaceId: WorkspaceUuid): Promise<MemberRow[]> {
  const rows: unknown[] = await db('members')
    .join('users', 'users.id', 'members.user_id')
    .where({ workspace_id: workspaceId })
    .orderBy(['members.created_at', 'users.id'])
    .select(users.fields('users'), 'members.role', 'members.created_at as joinedAt')
  return rows.map((value) => ({ ...users.read(value), ...joined.parse(value) }))
}

export async function findRole(db: Db, workspaceId: WorkspaceUuid, personUuid: PersonUuid): Promise<Role | null> {
  return cellOf(db('members').where({ workspace_id: workspaceId, user_id: personUuid }), 'role', z.enum(roles))
}

const member = query(
  'select user_id from members where workspace_id = ? and user_id = ?',
  z.object({ user_id: personUuid }),
)

export const isMember = async (db: Db, workspaceId: WorkspaceUuid, personUuid: PersonUuid): Promise<boolean> =>
  (await member.first(db, [workspaceId, personUuid])) !== null

const admins = query(
  `select user_id from members where workspace_id = ? and role in ('owner', 'admin')`,
  z.object({ user_id: personUuid }).transform((r) => r.user_id),
)

/** UUIDs of a workspace's owners and admins. */
export const listAdmins = (db: Db, workspaceId: WorkspaceUuid): Promise<PersonUuid[]> => admins.list(db, [workspaceId])

export const loginTokens = table(
  'login_tokens',
  {
    id: text,
    name: text,
    tokenHash: text,
    personUuid,
    workspaceId: workspaceUuid,
    createdAt: time,
    lastUsedAt: nullableTime,
    /** null: it never expires. */
    expiresAt: nullableTime,
  },
  { columns: { personUuid: 'user_id' } },
)
export type LoginToken = RowOf<typeof loginTokens>

export async function insertLoginToken(
  db: Db,
  token: Omit<LoginToken, 'createdAt' | 'lastUsedAt' | 'expiresAt'> & { at: number; expiresAt?: number | null },
): Promise<void> {
  const { at, ...given } = token
  await loginTokens.insert(db, { ...given, createdAt: at })
}

/** Revokes a token by its id or by its hash. Returns its id, or null when no such token is valid. */
export async function revokeLoginToken(
  db: Db,
  token: { id: string } | { tokenHash: string },
  at: number,
): Promise<string | null> {
  const where = 'id' in token ? { id: token.id } : { token_hash: token.tokenHash }
  const found: unknown = await db('login_tokens')
    .where(where)
    .whereNull('revoked_at')
    .where((open) => void open.whereNull('expires_at').orWhere('expires_at', '>', at))
    .first('id')
  if (found === undefined) return null
  const { id } = z.object({ id: text }).parse(found)
  return (await db('login_tokens').where({ id }).whereNull('revoked_at').update({ revoked_at: at })) === 1 ? id : null
}

/** A person of this workspace, by `usr_` id or UUID. */
export async function findMemberByReference(
  db: Db,
  workspaceId: WorkspaceUuid,
  reference: string,
): Promise<UserRow | null> {
  const column = reference.startsWith('usr_') ? 'users.public_id' : 'users.id'
  return users.first(
    db('members')
      .join('users', 'users.id', 'members.user_id')
      .where({ workspace_id: workspaceId, [column]: column === 'users.id' ? reference.toLowerCase() : reference })
      .select(users.fields('users')),
  )
}

export async function removeMember(
  db: Db,
  member: { workspaceId: WorkspaceUuid; personUuid: PersonUuid },
): Promise<boolean> {
  return (await db('members').where({ workspace_id: member.workspaceId, user_id: member.personUuid }).delete()) === 1
}

/** Revokes all login tokens of a person in one workspace. */
export async function revokeLoginTokensOf(
  db: Db,
  member: { workspaceId: WorkspaceUuid; personUuid: PersonUuid },
  at: number,
): Promise<void> {
  await db('login_tokens')
    .where({ workspace_id: member.workspaceId, user_id: member.personUuid })
    .whereNull('revoked_at')
    .update({ revoked_at: at })
}
