import type { ApprovalId, BlobId, BundleId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { blobId, bundleId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { command } from '../../db/statement.ts'
import { expectOnlyWriter, table, type RowOf } from '../../db/table.ts'

/**
 * Bundles of skills: a list of files, and one blob with the contents of all, one after the other in the order of the list.
 *
 *   staged (for a change that waits for approval) --approved--> of a skill --replaced, deleted--> retired --two days--> (none)
 *      |-- the change is closed otherwise --> (none)
 *
 * A bundle never changes. A retired one is kept for the runs that were given it before.
 */
const bundleFile = z.object({
  path: z.string(),
  sizeBytes: z.number().int(),
  sha256: z.string(),
  executable: z.boolean(),
})
export type BundleFile = z.infer<typeof bundleFile>

/** The front matter of a SKILL.md. */
export const frontMatter = z.object({
  name: z.string().nullable(),
  description: z.string().nullable(),
  allowedTools: z.array(z.string()),
})
export type FrontMatter = z.infer<typeof frontMatter>

const bundles = table('skill_bundles', {
  id: bundleId,
  workspaceId: workspaceUuid,
  blobId,
  bundleHash: text,
  /** Sorted by path. */
  files: json(z.array(bundleFile)),
  frontMatter: json(frontMatter),
  /** The platform change for which it is staged. */
  changeId: nullableText,
  createdAt: time,
  retiredAt: nullableTime,
})
export type BundleRow = RowOf<typeof bundles>

export async function insertBundle(db: Db, bundle: BundleRow): Promise<void> {
  await bundles.insert(db, bundle)
}

export async function findBundle(db: Db, workspaceId: WorkspaceUuid, id: BundleId): Promise<BundleRow | null> {
  return bundles.find(db, { workspaceId, id })
}

const byIds = bundles.query('where workspace_id = ? and id in ?')

/** Returns the bundles by their ids. */
export async function listBundles(
  db: Db,
  workspaceId: WorkspaceUuid,
  ids: readonly BundleId[],
): Promise<Map<BundleId, BundleRow>> {
  const found = ids.length === 0 ? [] : await byIds.list(db, [workspaceId, [...ids]])
  return new Map(found.map((bundle) => [bundle.id, bundle]))
}

const byHash = bundles.query(
  'where workspace_id = ? and bundle_hash = ? and change_id is null order by created_at desc, id limit 1',
)

/** The files with this hash that a skill of the workspace has, or had; those that wait for approval are nobody's yet. */
export async function findBundleByHash(
  db: Db,
  workspaceId: WorkspaceUuid,
  bundleHash: string,
): Promise<BundleRow | null> {
  return byHash.first(db, [workspaceId, bundleHash])
}

const ofBlobs = bundles.query('where blob_id in ?')

/** Lists the bundles whose contents these blobs are. No index finds them: one call for many blobs costs as much as for one. */
export const listBundlesOfBlobs = (db: Db, blobIds: readonly BlobId[]): Promise<BundleRow[]> =>
  ofBlobs.list(db, [blobIds])

const staged = bundles.query('where change_id = ? and workspace_id = ? and retired_at is null order by id limit 200')
/** Lists those that wait for the approval of a platform change. */
export const listStagedBundles = (db: Db, workspaceId: WorkspaceUuid, changeId: ApprovalId): Promise<BundleRow[]> =>
  staged.list(db, [changeId, workspaceId])

/** Makes a staged bundle that of a skill. Fails with `transient_conflict` when it is staged no more. */
export async function adoptBundle(db: Db, id: string): Promise<void> {
  expectOnlyWriter(
    await db('skill_bundles').where({ id }).whereNotNull('change_id').whereNull('retired_at').update({
      change_id: null,
    }),
  )
}

const retire = command('update skill_bundles set retired_at = ? where id = ?')

export async function retireBundle(db: Db, id: BundleId, now: number): Promise<void> {
  await retire(db, [now, id])
}

const goneTable = table('skill_bundles', { id: bundleId, workspaceId: workspaceUuid, blobId })
export type GoneBundle = RowOf<typeof goneTable>
const retiredBefore = goneTable.query('where retired_at < ? order by retired_at, id limit ?')
const staleStaged = goneTable.query(
  `where change_id is not null and exists
     (select 1 from platform_changes where platform_changes.id = skill_bundles.change_id and status <> 'pending')
   order by change_id limit ?`,
)

/** Lists bundles that were retired before this time, and those staged for a change that was closed without them. */
export async function listGoneBundles(
  db: Db,
  { retiredBefore: before, limit }: { retiredBefore: number; limit: number },
): Promise<GoneBundle[]> {
  return [...(await retiredBefore.list(db, [before, limit])), ...(await staleStaged.list(db, [limit]))]
}

/** Removes a bundle that no skill has. Returns whether it was there still. */
export async function removeBundle(db: Db, id: BundleId): Promise<boolean> {
  const rows = db('skill_bundles').where({ id })
  void rows.where((any) => void any.whereNotNull('change_id').orWhereNotNull('retired_at'))
  return (await rows.delete()) === 1
}
