import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { hashToken, newToken } from '../link/device-tokens.ts'
import {
  countUsers,
  findUserByEmail,
  insertLoginToken,
  insertUser,
  replaceMember,
  revokeLoginToken,
  type Role,
  type UserRow,
} from '../resources/members/store.ts'
import {
  findWorkspaceBySlug,
  insertCompany,
  insertWorkspace,
  listMemberships,
  type WorkspaceRow,
} from '../resources/workspaces/store.ts'

/** What an operator asked for cannot be done; the text says why and what to type. */
export class OperatorError extends Error {}

export interface NewLogin {
  userId: string
  workspaceId: string
  token: string
  tokenId: string
}

export interface AddUser {
  name: string
  email: string
  /** Slug; one that does not exist is created with its company. Without it: the first workspace there is. */
  workspace: string | null
  role: Role
}

/** Adds a person to a workspace and gives out a login token. A known address keeps its person. */
export async function addUser(tx: Tx, world: World, input: AddUser): Promise<NewLogin> {
  const email = input.email.trim().toLowerCase()
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new OperatorError(`${input.email} is not an e-mail address.`)
  if (input.name.trim() === '') throw new OperatorError('A person needs a name (--name).')
  const user = (await findUserByEmail(tx, email)) ?? (await createUser(tx, world, { name: input.name.trim(), email }))
  const workspace = await workspaceFor(tx, world, input.workspace ?? 'main')
  await replaceMember(tx, { workspaceId: workspace.id, userId: user.id, role: input.role, at: world.now() })
  return giveToken(tx, world, { user, workspaceId: workspace.id, name: 'svc-server user add' })
}

/** A new login token for a person who is a member already. */
export async function createToken(
  tx: Tx,
  world: World,
  input: { email: string; workspace: string | null; name: string | null },
): Promise<NewLogin> {
  const user = await findUserByEmail(tx, input.email.trim())
  if (!user) throw new OperatorError(`No person has the address ${input.email}. Type: svc-server user add`)
  const memberships = await listMemberships(tx, user.id)
  const found =
    input.workspace === null
      ? memberships[0]
      : memberships.find(({ workspace }) => workspace.slug === input.workspace || workspace.id === input.workspace)
  if (!found) throw new OperatorError(`${input.email} is not a member of ${input.workspace ?? 'any workspace'}.`)
  return giveToken(tx, world, { user, workspaceId: found.workspace.id, name: input.name ?? 'svc-server token create' })
}

/** By the token's id or the token itself. */
export async function revokeToken(tx: Tx, world: World, token: string): Promise<{ tokenId: string }> {
  const tokenId = await revokeLoginToken(
    tx,
    token.startsWith('svc_pat_') ? { tokenHash: hashToken(token) } : { id: token },
    world.now(),
  )
  if (tokenId === null) throw new OperatorError('There is no such login token, or it is revoked already.')
  return { tokenId }
}


/**
 * The first start of an empty database: a person, a company and a workspace, so that `svc login` works at once. Null when
 * there are people already. Safe when replicas start together: the address is unique.
 */
export async function firstStart(tx: Tx, world: World): Promise<NewLogin | null> {
  if ((await countUsers(tx)) > 0) return null
  return addUser(tx, world, { name: 'Owner', email: 'owner@localhost', workspace: 'main', role: 'owner' })
}

async function createUser(tx: Tx, world: World, person: { name: string; email: string }): Promise<UserRow> {
  const user: UserRow = { id: world.uuid(), publicId: world.id('usr_'), createdAt: world.now(), ...person }
  await insertUser(tx, user)
  return user
}

async function workspaceFor(tx: Tx, world: World, slug: string): Promise<{ id: string }> {
  const known: WorkspaceRow | null = await findWorkspaceBySlug(tx, slug)
  if (known) return known
  if (!/^[a-z][a-z0-9-]{1,62}$/.test(slug))
    throw new OperatorError(
      `${slug} cannot be a slug: 2 to 63 lowercase letters, digits and hyphens, starting with a letter.`,
    )
  const at = world.now()
  const name = slug.replaceAll('-', ' ').replace(/^./, (first) => first.toUpperCase())
  const companyId = world.uuid()
  await insertCompany(tx, { id: companyId, name, at })
  const id = world.uuid()
  const issuePrefix = slug.replaceAll(/[^a-z]/g, '').slice(0, 4).toUpperCase()
  await insertWorkspace(tx, { id, publicId: world.id('ws_'), companyId, name, slug, issuePrefix, at })
  return { id }
}

async function giveToken(
  tx: Tx,
  world: World,
  input: { user: UserRow; workspaceId: string; name: string },
): Promise<NewLogin> {
  const token = newToken(world, 'svc_pat_')
  const tokenId = world.uuid()
  await insertLoginToken(tx, {
    id: tokenId,
    userId: input.user.id,
    workspaceId: input.workspaceId,
    tokenHash: hashToken(token),
    name: input.name,
    at: world.now(),
  })
  return { userId: input.user.publicId, workspaceId: input.workspaceId, token, tokenId }
}
