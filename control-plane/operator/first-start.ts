import type { World } from '../../shared/lib/world.ts'
import { lockTable } from '../db/dialect.ts'
import type { Db } from '../db/open.ts'
import { countUsers, replaceMember } from '../resources/members/store.ts'
import { issueToken, type NewToken } from '../sign-in/issue-token.ts'
import { firstSlug, makeUser, makeNamedWorkspace } from './people.ts'

/**
 * Makes the first person, company and workspace, and a login token, in an empty database. Returns null when somebody is
 * known already. Replicas that start together on one empty database wait for each other, so that only one of them makes
 * these.
 */
export async function firstStart(db: Db, world: World): Promise<NewToken | null> {
  if ((await countUsers(db)) > 0) return null
  await lockTable(db, 'users')
  if ((await countUsers(db)) > 0) return null
  const user = await makeUser(db, world, { name: 'Owner', email: 'owner@localhost' })
  const workspace = await makeNamedWorkspace(db, world, firstSlug)
  await replaceMember(db, { workspaceId: workspace.id, personUuid: user.id, role: 'owner', at: world.now() })
  return issueToken(db, world, { user, workspaceId: workspace.id, name: 'first start' })
}
