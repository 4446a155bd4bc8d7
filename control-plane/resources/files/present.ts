import type { FileSummary } from '../../../shared/api/file-fields.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import type { FileRow } from './store.ts'

export function presentFileSummary(file: FileRow): FileSummary {
  const { id, name, contentType, sizeBytes, description, createdAt, updatedAt } = file
  return {
    object: 'file',
    id,
    name,
    contentType,
    sizeBytes,
    description,
    createdAt: toTimestamp(createdAt),
    updatedAt: toTimestamp(updatedAt),
  }
}
