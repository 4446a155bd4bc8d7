import { ApiError, PlainApiError } from '../../shared/api/errors.ts'
import { StorageError } from '../blobs/place.ts'
import { NotBegunError, databaseTroubleOf, wasCancelled } from '../db/dialect.ts'

export type AnyApiError = ApiError | PlainApiError

/** Turns an error into the one that the caller gets. An unknown one is `internal_error`, and its text stays in the log. */
export function toApiError(error: unknown): AnyApiError {
  if (error instanceof ApiError || error instanceof PlainApiError) return error
  if (error instanceof StorageError)
    return new ApiError('storage_unavailable', { cause: error, headers: { 'Retry-After': '5' } })
  const trouble = databaseTroubleOf(error)
  if (trouble === null) return new ApiError('internal_error', { cause: error })
  if (trouble === 'duplicate') return new ApiError('duplicate_resource', { cause: error })
  const headers = trouble === 'query_timeout' ? {} : { 'Retry-After': '1' }
  return new ApiError(trouble, { cause: error, headers })
}

/**
 * True when a write that ended so is known to have done nothing: its transaction was rolled back by a refusal of ours, or by
 * the database itself, or did not begin. After anything else the commit may have happened.
 */
export function isWithoutEffect(error: unknown): boolean {
  if (error instanceof ApiError) return error.code !== 'internal_error'
  if (error instanceof PlainApiError || error instanceof NotBegunError) return true
  const trouble = databaseTroubleOf(error)
  return trouble === 'transient_conflict' || trouble === 'duplicate' || wasCancelled(error)
}
