import { loginTokenPrefix } from '../../shared/lib/places.ts'
import { idFrom, type PersonUuid, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import type { World } from '../../shared/lib/world.ts'
import { workspaceSlug } from '../../shared/api/workspaces.ts'
import type { Db } from '../db/open.ts'
import { hashToken } from '../http/token-hash.ts'
import { issueToken, type NewToken } from '../sign-in/issue-token.ts'
import { listSolelyOwned } from './access-store.ts'
import {
  findRole,
  findUserByEmail,
  insertUser,
  replaceMember,
  revokeLoginToken,
  type Role,
  type UserRow,
} from '../resources/members/store.ts'
import { makeWorkspace } from '../resources/workspaces/steps/make.ts'
import { findSlugOwner } from '../resources/workspaces/slug-store.ts'
import {
  clearDefaultDeviceOf,
  findWorkspace,
  findWorkspaceBySlug,
  listAllWorkspaces,
  listMemberships,
  type WorkspaceRow,
} from '../resources/workspaces/store.ts'

// The operator's actions on people and their login tokens, directly on the database.

/** An error with a sentence for the operator. */
export class OperatorError extends Error {
  override name = 'OperatorError'
}

export interface NewUser {
  name: string
  email: string
  /** null: the person's present role, else `owner` of a workspace that this call makes, else `member`. */
  role: Role | null
  /**
   * Slug of a workspace, which is made with its company if it does not exist. null: the only workspace, or `main` when
   * there is none.
   */
  workspace: string | null
}

/** Slug of the workspace that is made when none is named. */
export const firstSlug = 'main'

const personName = z.string().trim().min(1).max(200)
const emailAddress = z.email().max(320).toLowerCase()

/** Makes a person a member of a workspace, with a login token. A known person keeps their name. */
export async function addUser(
  db: Db,
  world: World,
  { lifeMs = null, ...input }: NewUser & { lifeMs?: number | null },
): Promise<NewToken & { workspace: string }> {
  const { user, workspace } = await addMember(db, world, input)
  const token = await issueToken(db, world, { user, workspaceId: workspace.id, name: 'user add', lifeMs })
  return { ...token, workspace: workspace.slug }
}

/** Adds a person without a token, for people who sign in at an issuer. */
export async function addUserWithoutToken(db: Db, world: World, input: NewUser) {
  const { user, workspace } = await addMember(db, world, input)
  return { userId: user.publicId, workspaceId: workspace.id, workspace: workspace.slug }
}

async function addMember(db: Db, world: World, input: NewUser) {
  const name = parse(personName, input.name, 'The name')
  const email = parse(emailAddress, input.email, 'The email address')
  const known = await knownWorkspace(db, input.workspace)
  const workspace = known ?? (await makeNamedWorkspace(db, world, input.workspace ?? firstSlug))
  const user = (await findUserByEmail(db, email)) ?? (await makeUser(db, world, { name, email }))
  // A person who is named again, for a new token, keeps their rights; and a new workspace needs an owner.
  const role = input.role ?? (await findRole(db, workspace.id, user.id)) ?? (known === null ? 'owner' : 'member')
  if (role !== 'owner') await refuseForOnlyOwner(db, user, workspace)
  await replaceMember(db, { workspaceId: workspace.id, personUuid: user.id, role, at: world.now() })
  if (role === 'member') await clearDefaultDeviceOf(db, { workspaceId: workspace.id, personUuid: user.id })
  return { user, workspace }
}

/** Fails for the only owner: nobody could do any more what only owners may do. */
async function refuseForOnlyOwner(
  db: Db,
  user: UserRow,
  workspace: { id: WorkspaceUuid; slug: string },
): Promise<void> {
  const owned = await listSolelyOwned(db, user.id)
  if (owned.some(({ id }) => id === workspace.id))
    throw new OperatorError(`${user.email} is the only owner of ${workspace.slug}. Make somebody else its owner first.`)
}

/** Makes a new login token for a member; older ones stay valid. It ends after `lifeMs`, or when it is revoked. */
export async function createToken(
  db: Db,
  world: World,
  input: { email: string; workspace: string | null; name: string | null; lifeMs?: number | null },
): Promise<NewToken> {
  const { user, workspaceId } = await memberByEmail(db, input)
  const name = parse(personName, input.name ?? 'token create', 'The name of the token')
  const grant = { user, workspaceId, name }
  return issueToken(db, world, { ...grant, lifeMs: input.lifeMs ?? null })
}

/** The member with this address, and the named workspace or the first joined. */
export async function memberByEmail(
  db: Db,
  input: { email: string; workspace: string | null },
): Promise<{ user: UserRow; workspaceId: WorkspaceUuid }> {
  // The form is not checked: the first person's address is `owner@localhost`.
  const user = await findUserByEmail(db, input.email)
  if (user === null) throw new OperatorError(`Nobody has the address ${input.email}.`)
  return { user, workspaceId: await joinedWorkspace(db, user, input.workspace) }
}

/** Revokes a login token by its id or by the token itself. */
export async function revokeToken(db: Db, world: World, token: string): Promise<{ tokenId: string; revoked: true }> {
  const by = token.startsWith(loginTokenPrefix) ? { tokenHash: hashToken(token) } : { id: token }
  const tokenId = await revokeLoginToken(db, by, world.now())
  if (tokenId === null) throw new OperatorError('No valid login token has this id or text.')
  return { tokenId, revoked: true }
}

export async function makeUser(db: Db, world: World, person: { name: string; email: string }): Promise<UserRow> {
  const user = { id: world.uuid<PersonUuid>(), publicId: world.id('usr_'), ...person, createdAt: world.now() }
  await insertUser(db, user)
  return user
}

/** Makes a workspace whose name consists of the words of its slug. */
export async function makeNamedWorkspace(
  db: Db,
  world: World,
  slug: string,
): Promise<{ id: WorkspaceUuid; slug: string }> {
  if ((await findSlugOwner(db, slug)) !== null)
    throw new OperatorError(`Another workspace had the slug ${slug}; it stays reserved.`)
  const words = slug.split('-').filter((word) => word !== '')
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ')
  return makeWorkspace(db, world, { name, slug })
}

/** Returns null when the workspace must be made. */
async function knownWorkspace(db: Db, slug: string | null): Promise<{ id: WorkspaceUuid; slug: string } | null> {
  if (slug !== null) return findWorkspaceBySlug(db, parse(workspaceSlug, slug, 'The slug of the workspace'))
  const [only, ...others] = await listAllWorkspaces(db, 2)
  if (others.length > 0) throw new OperatorError('There are several workspaces; name one with --workspace.')
  return only ?? null
}

async function joinedWorkspace(db: Db, user: UserRow, named: string | null): Promise<WorkspaceUuid> {
  if (named === null) {
    const [first] = await listMemberships(db, user.id)
    if (first === undefined) throw new OperatorError(`${user.email} belongs to no workspace.`)
    return first.workspace.id
  }
  const workspace: WorkspaceRow | null =
    (await findWorkspaceBySlug(db, named)) ?? (await findWorkspace(db, idFrom(named.toLowerCase())))
  if (workspace === null) throw new OperatorError(`There is no workspace ${named}.`)
  if ((await findRole(db, workspace.id, user.id)) === null)
    throw new OperatorError(`${user.email} is not a member of ${workspace.slug}.`)
  return workspace.id
}

function parse<T extends z.ZodType>(schema: T, value: unknown, what: string): z.output<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new OperatorError(`${what} cannot be used: ${parsed.error.issues[0]?.message ?? 'not valid'}.`)
}
