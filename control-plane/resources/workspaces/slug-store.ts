import { text } from '../../db/columns.ts'
import { cellOf } from '../../db/reads.ts'
import type { Db } from '../../db/open.ts'

/**
 * Slugs that workspaces have or had. A row stays when its workspace is renamed or removed, so nobody else can get the
 * slug.
 */

export interface SlugClaim {
  slug: string
  workspaceId: string
  at: number
}

/** Throws the database's unique violation when the slug is or was a workspace's. */
export async function insertSlug(db: Db, claim: SlugClaim): Promise<void> {
  await db('workspace_slugs').insert(toColumns(claim))
}

/**
 * Claims the slug for the workspace if nobody else has or had it. Two simultaneous claims of one slug wait for each
 * other.
 */
export async function claimSlug(db: Db, claim: SlugClaim): Promise<boolean> {
  await db('workspace_slugs').insert(toColumns(claim)).onConflict('slug').ignore()
  return (await findSlugOwner(db, claim.slug)) === claim.workspaceId
}

/** The workspace that has or had the slug; it may be gone. */
export async function findSlugOwner(db: Db, slug: string): Promise<string | null> {
  return cellOf(db('workspace_slugs').where({ slug }), 'workspace_id', text)
}

const toColumns = ({ slug, workspaceId, at }: SlugClaim) => ({ slug, workspace_id: workspaceId, created_at: at })
