import type { WorkspaceUuid } from '../../../../../shared/lib/ids.ts'
import type { File, FileRelation, FileRevision } from '../../../../../shared/api/file-fields.ts'
import { toTimestamp } from '../../../../../shared/api/ids.ts'
import { toProjectRef } from '../../../../../shared/lib/project-ref.ts'
import type { Db } from '../../../../db/open.ts'
import { loadNames } from '../../../conversations/names.ts'
import { presentFileSummary } from '../../own/present.ts'
import type { FileRelationRow } from '../../own/relation-store.ts'
import type { FileRevisionRow } from '../../revision-store.ts'
import type { FileRow } from '../../store.ts'

export async function presentFile(db: Db, file: FileRow): Promise<File> {
  const by = { type: file.createdByType, id: file.createdByRef }
  const nameOf = await loadNames(db, file.workspaceId, [by])
  const { ownerRef, visibility, deletedAt, sha256, textPreview, revisionCount } = file
  return {
    ...presentFileSummary(file),
    ownerUserId: ownerRef,
    visibility,
    deletedAt: toTimestamp(deletedAt),
    createdBy: { ...by, name: nameOf(by).name },
    sha256,
    textPreview,
    revisionCount,
  }
}

export async function presentFileRevisions(
  db: Db,
  workspaceId: WorkspaceUuid,
  revisions: readonly FileRevisionRow[],
): Promise<FileRevision[]> {
  const authorOf = ({ authorType, authorRef }: FileRevisionRow) => ({ type: authorType, id: authorRef })
  const nameOf = await loadNames(db, workspaceId, revisions.map(authorOf))
  return revisions.map((revision) => {
    const { id, fileId, number, sizeBytes, contentType, sha256, createdAt } = revision
    const author = authorOf(revision)
    return {
      object: 'file_revision',
      id,
      fileId,
      version: number,
      sizeBytes,
      contentType,
      sha256,
      author: { ...author, name: nameOf(author).name },
      createdAt: toTimestamp(createdAt),
    }
  })
}

export function presentRelation({ id, fileId, entityType, entityId, role, createdAt }: FileRelationRow): FileRelation {
  return {
    id,
    fileId,
    entityType,
    entityId: entityType === 'project' ? toProjectRef(entityId) : entityId,
    role,
    createdAt: toTimestamp(createdAt),
  }
}
