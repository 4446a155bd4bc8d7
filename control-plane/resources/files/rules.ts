import { inlineBytes } from '../../../shared/api/file-fields.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import type { FileRow } from './store.ts'
import type { FileViewer } from './visibility.ts'

// Decisions about files.

type Seen = Pick<FileRow, 'visibility' | 'ownerRef' | 'createdByType' | 'createdByRef'>

export function fileViewerOf(caller: Caller): FileViewer {
  if (caller.kind === 'agent') return { type: 'agent', id: caller.agentRef }
  return hasRole(caller, 'admin') ? null : { type: 'user', id: caller.personRef }
}

/** A private file is seen by its owner, by workspace admins, and by the agent that uploaded it. */
export function isFileVisible(file: Seen, viewer: FileViewer): boolean {
  if (file.visibility === 'company' || viewer === null) return true
  if (viewer.type === 'user') return file.ownerRef === viewer.id
  return file.createdByType === 'agent' && file.createdByRef === viewer.id
}

/**
 * Returns whether the caller may restore the file, give it away and say who sees it: its owner and workspace admins may; an agent owns
 * none.
 */
export function ownsOrAdministersFile(file: Pick<FileRow, 'ownerRef'>, caller: Caller): boolean {
  return caller.kind === 'person' && (hasRole(caller, 'admin') || file.ownerRef === caller.personRef)
}

/** Bytes of text that an answer holds for this caller. */
export const inlineLimitOf = (caller: Caller): number => inlineBytes[caller.kind]

/** A deleted file is purged after this time. */
export const purgeMs = 10 * 60_000

/** Until when a deleted file can be restored; null: it is not deleted, or its bytes went with it. */
export const restorableUntil = (file: Pick<FileRow, 'deletedAt' | 'blobId'>): number | null =>
  file.deletedAt === null || file.blobId === null ? null : file.deletedAt + purgeMs
