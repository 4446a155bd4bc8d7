import type { CompanyUuid, PersonUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { replaceMember } from '../../members/store.ts'
import { findOnlyWorkspace, insertBinding } from '../../repos/binding-store.ts'
import { issuePrefixOf } from '../rules.ts'
import { insertCompany, insertWorkspace } from '../store.ts'

/**
 * Makes a workspace with its billing company, which first has the same name. Throws the database's unique violation
 * when the slug is or was another workspace's.
 */
export async function makeWorkspace(
  db: Db,
  world: World,
  workspace: {
    name: string
    slug: string
    issuePrefix?: string | undefined
    /** UUID of the person who becomes its owner; default: nobody yet. */
    ownerUuid?: PersonUuid
  },
): Promise<{ id: WorkspaceUuid; slug: string }> {
  const at = world.now()
  const { name, slug } = workspace
  const issuePrefix = workspace.issuePrefix ?? issuePrefixOf(slug)
  const companyId = world.uuid<CompanyUuid>()
  // The server's only workspace keeps access to all repositories when another one is made.
  const only = await findOnlyWorkspace(db)
  if (only !== null) await insertBinding(db, { workspaceId: only, repository: '*', at })
  await insertCompany(db, { id: companyId, name, at })
  const id = world.uuid<WorkspaceUuid>()
  await insertWorkspace(db, { id, publicId: world.id('ws_'), companyId, name, slug, issuePrefix, at })
  const { ownerUuid: personUuid } = workspace
  if (personUuid !== undefined) await replaceMember(db, { workspaceId: id, personUuid, role: 'owner', at })
  return { id, slug }
}
