import { idFrom, type FileId, type PersonRef, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { insertFileRevision, type FileRevisionRow } from '../../control-plane/resources/files/revision-store.ts'
import { insertFile, type FileRow } from '../../control-plane/resources/files/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

// Rows of files for store tests.

export function fileRow(workspaceId: WorkspaceUuid, changes: Partial<FileRow> = {}): FileRow {
  return {
    id: realWorld.id('file_'),
    workspaceId,
    name: 'notes.txt',
    contentType: 'text/plain',
    sizeBytes: 11,
    description: null,
    ownerRef: idFrom<PersonRef>('usr_owner'),
    visibility: 'company',
    createdByType: 'user',
    createdByRef: idFrom('usr_owner'),
    sha256: 'a'.repeat(64),
    textPreview: 'Some notes.',
    revisionCount: 1,
    blobId: realWorld.id('blb_'),
    deletedAt: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
}

export function revisionRow(fileId: FileId, number: number): FileRevisionRow {
  return {
    id: realWorld.id('frev_'),
    fileId,
    number,
    blobId: realWorld.id('blb_'),
    sizeBytes: 11,
    contentType: 'text/plain',
    sha256: 'a'.repeat(64),
    authorType: 'user',
    authorRef: idFrom('usr_owner'),
    createdAt: at,
  }
}

export async function seedFile(db: Db, workspaceId: WorkspaceUuid, changes: Partial<FileRow> = {}): Promise<FileRow> {
  const file = fileRow(workspaceId, changes)
  await insertFile(db, file)
  await insertFileRevision(db, { ...revisionRow(file.id, 1), blobId: file.blobId })
  return file
}
