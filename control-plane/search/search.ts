import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { inOneTrip } from '../db/one-trip.ts'
import type { Db } from '../db/open.ts'
import { fuse } from './fuse.ts'
import type { Meaning } from './embeddings/meaning.ts'
import { findRanked, maxFound, type Ranked } from './find.ts'
import { readQuery } from './query.ts'

/**
 * Lists the pages of a workspace that a text finds, best first: by its words, and by what they are about where there is a model
 * (null: there is none).
 */
export async function search(
  db: Db,
  { workspaceId, text, meaning }: { workspaceId: WorkspaceUuid; text: string; meaning: Pick<Meaning, 'find'> | null },
): Promise<Ranked[]> {
  const query = readQuery(text)
  const [byWords, byMeaning] = await inOneTrip(db, [
    () => (query === null ? [] : findRanked(db, { workspaceId, query })),
    () => meaning?.find(db, { workspaceId, text }) ?? [],
  ])
  if (byMeaning.length === 0) return byWords
  const ords = new Map(byMeaning.map(({ subject, ord }) => [subject, ord]))
  return fuse<Ranked>([byWords, byMeaning], ({ subject }) => subject)
    .slice(0, maxFound)
    .map((page) => ({ ...page, ord: ords.get(page.subject) }))
}
