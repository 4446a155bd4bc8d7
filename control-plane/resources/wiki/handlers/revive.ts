import type { Caller } from '../../../http/callers.ts'
import type { Db } from '../../../db/open.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findRevisionBody } from '../revision-store.ts'
import type { Revived } from '../steps/own/page.ts'
import type { WikiPageRow } from '../store.ts'
import { readingOf } from './reading.ts'

/** Reads in a worker what readers see of a page that is to be live again. */
export async function revivedOf(
  db: Db,
  { kind, currentRevisionId: revisionId }: Pick<WikiPageRow, 'kind' | 'currentRevisionId'>,
  about: { caller: Caller } & Pick<ResourceDependencies, 'costly'>,
): Promise<Revived> {
  const body = revisionId === null ? '' : await findRevisionBody(db, revisionId)
  const { searchable } = await readingOf({ kind, body }, about)
  return { revisionId, searchable }
}
