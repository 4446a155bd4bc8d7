import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { text, time } from '../../db/columns.ts'
import { workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

// Slugs that workspaces have or had. A row stays when its workspace is renamed or removed, so nobody else can get the
// slug.

const slugs = table(
  'workspace_slugs',
  { slug: text, workspaceId: workspaceUuid, at: time },
  { columns: { at: 'created_at' } },
)
export type SlugClaim = RowOf<typeof slugs>

/** Throws the database's unique violation when the slug is or was a workspace's. */
export async function insertSlug(db: Db, claim: SlugClaim): Promise<void> {
  await slugs.insert(db, claim)
}

/**
 * Claims the slug for the workspace if nobody else has or had it. Two simultaneous claims of one slug wait for each
 * other.
 */
export async function claimSlug(db: Db, claim: SlugClaim): Promise<boolean> {
  await db('workspace_slugs').insert(slugs.toColumns(claim)).onConflict('slug').ignore()
  return (await findSlugOwner(db, claim.slug)) === claim.workspaceId
}

/** The workspace that has or had the slug; it may be gone. */
export async function findSlugOwner(db: Db, slug: string): Promise<WorkspaceUuid | null> {
  return (await slugs.find(db, { slug }))?.workspaceId ?? null
}
