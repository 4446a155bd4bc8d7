import { idFrom, type FileId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { fileViewerOf, isFileVisible } from '../rules.ts'
import { findFile, type FileRow } from '../store.ts'

/** The file, deleted or not, if the caller sees it. Fails with `resource_not_found`. */
export async function visibleFile(db: Db, caller: Caller, id: FileId): Promise<FileRow> {
  const file = await findFile(db, caller.workspaceId, id)
  return file !== null && isFileVisible(file, fileViewerOf(caller)) ? file : unknownFile()
}

/** Like `visibleFile`, but only if it is not deleted. */
export async function liveFile(db: Db, caller: Caller, id: FileId): Promise<FileRow> {
  return (await lookUpFile(db, caller, id)) ?? unknownFile()
}

/** Like `liveFile`; null when there is none. */
export async function lookUpFile(db: Db, caller: Caller, id: string): Promise<FileRow | null> {
  const file = await findFile(db, caller.workspaceId, idFrom(id))
  const isThere = file !== null && file.deletedAt === null && isFileVisible(file, fileViewerOf(caller))
  return isThere ? file : null
}

export function unknownFile(): never {
  return fail('resource_not_found', { param: 'id', message: 'There is no such file that you can see.' })
}
