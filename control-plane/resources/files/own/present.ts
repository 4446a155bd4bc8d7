import type { FileSummary } from '../../../../shared/api/file-fields.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { restorableUntil } from '../rules.ts'
import type { FileRow } from '../store.ts'

export function presentFileSummary(file: FileRow): FileSummary {
  const { id, name, contentType, sizeBytes, description, createdAt, updatedAt } = file
  return {
    object: 'file',
    id,
    name,
    contentType,
    sizeBytes,
    description,
    ...(file.deletedAt !== null && { restorableUntil: toTimestamp(restorableUntil(file)) }),
    createdAt: toTimestamp(createdAt),
    updatedAt: toTimestamp(updatedAt),
  }
}
