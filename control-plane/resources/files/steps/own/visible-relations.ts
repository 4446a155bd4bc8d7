import type { FileId } from '../../../../../shared/lib/ids.ts'
import type { Db } from '../../../../db/open.ts'
import type { Caller } from '../../../../http/callers.ts'
import { listFileRelations, type FileRelationRow } from '../../own/relation-store.ts'
import { sightOf } from '../entities.ts'

type Place = { createdAt: number; id: string }

/** Rows read at once: what the caller does not see may stand before what fills the page. */
const batch = 100

/**
 * Lists the relations of a file to things that the caller sees, newest first; one row more than `limit`. Hidden ones count
 * for nothing: a page that they make short would tell that they exist.
 */
export async function listVisibleRelations(
  db: Db,
  caller: Caller,
  { fileId, before, limit }: { fileId: FileId; before?: Place; limit: number },
): Promise<FileRelationRow[]> {
  const isSeen = sightOf(db, caller)
  const visible: FileRelationRow[] = []
  for (let place: Place | undefined = before; ;) {
    const rows: FileRelationRow[] = await listFileRelations(db, {
      fileId,
      ...(place !== undefined && { before: place }),
      limit: batch,
    })
    for (const row of rows) {
      if (await isSeen(row)) visible.push(row)
      if (visible.length > limit) return visible
    }
    if (rows.length <= batch) return visible
    place = rows.at(-1)
  }
}
