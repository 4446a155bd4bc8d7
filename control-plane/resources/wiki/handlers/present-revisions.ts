import type { RunId, TaskId } from '../../../../shared/lib/ids.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { WikiRevision } from '../../../../shared/api/wiki-fields.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { loadNames } from '../../conversations/names.ts'
import { onlyVisibleEntities } from '../../files/steps/entities.ts'
import type { WikiRevisionRow } from '../revision-store.ts'
import { tokenCountOf } from '../own/rules.ts'

const originTypes = { taskId: 'task', runId: 'run' } as const
const keys = ['taskId', 'runId'] as const

/** Everybody reads all pages; whoever does not see a task or a run does not see that a text was written on it. */
export async function presentWikiRevisions(
  db: Db,
  caller: Caller,
  revisions: readonly WikiRevisionRow[],
): Promise<WikiRevision[]> {
  const authorOf = ({ authorType, authorRef }: WikiRevisionRow) => ({ type: authorType, id: authorRef })
  const nameOf = await loadNames(db, caller.workspaceId, revisions.map(authorOf))
  const origins = revisions.flatMap((revision) =>
    keys.flatMap((key) => {
      const entityId = revision[key]
      return entityId === null ? [] : [{ entityType: originTypes[key], entityId }]
    }),
  )
  const seen = new Set((await onlyVisibleEntities(db, caller, origins)).map(({ entityId }) => entityId))
  const shown = <Kind extends RunId | TaskId>(id: Kind | null) => (id !== null && seen.has(id) ? id : null)
  return revisions.map((revision) => {
    const { id, pageId, title, baseRevisionId, sourceRef, taskId, runId, sizeBytes, failedChecks } = revision
    const author = authorOf(revision)
    return {
      object: 'wiki_revision',
      id,
      pageId,
      title,
      baseRevisionId,
      sourceRef,
      author: { ...author, name: nameOf(author).name },
      taskId: shown(taskId),
      runId: shown(runId),
      tokenCount: tokenCountOf(sizeBytes),
      isPublished: failedChecks.length === 0,
      failedChecks,
      createdAt: toTimestamp(revision.createdAt),
    }
  })
}
