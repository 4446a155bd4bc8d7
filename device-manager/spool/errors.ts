/** Something is wrong with the spool; each kind that callers tell apart is a class of its own. */
export class SpoolError extends Error {
  override name = 'SpoolError'
}
/** No room: neither the file's limit nor the disk takes more. Endings still fit (reserved room). */
export class SpoolFullError extends SpoolError {
  override name = 'SpoolFullError'
}
/** Another process held the write lock for the whole time limit. Nothing was written; try again. */
export class SpoolBusyError extends SpoolError {
  override name = 'SpoolBusyError'
}
/** The file cannot be read as a spool. The daemon sets it aside and salvages it (`openSpool`). */
export class SpoolDamagedError extends SpoolError {
  override name = 'SpoolDamagedError'
}
/** Another file stands at the spool's path: this one was set aside. Open it again and look what is left of the run. */
export class SpoolReplacedError extends SpoolError {
  override name = 'SpoolReplacedError'
}
/** Rows that do not follow the last one, or a run that already has its ending. */
export class SpoolOrderError extends SpoolError {
  override name = 'SpoolOrderError'
}
/** Any other trouble of the disk: read-only, gone, input/output errors. */
export class SpoolUnavailableError extends SpoolError {
  override name = 'SpoolUnavailableError'
}

const kinds: readonly (readonly [RegExp, new (message: string, options: ErrorOptions) => SpoolError])[] = [
  [/^SQLITE_(FULL|IOERR_SHMSIZE)$/, SpoolFullError],
  [/^SQLITE_(BUSY|LOCKED|PROTOCOL)/, SpoolBusyError],
  [/^SQLITE_(CORRUPT|NOTADB|IOERR_SHORT_READ)/, SpoolDamagedError],
  [/^SQLITE_(IOERR|READONLY|CANTOPEN|PERM|NOLFS|AUTH)/, SpoolUnavailableError],
]

/** The error a caller of the spool gets for what SQLite or the file system said; other errors as they are. */
export function toSpoolError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof SpoolError) return error
  const code = 'code' in error ? String(error.code) : ''
  for (const [pattern, Kind] of kinds)
    if (pattern.test(code)) return new Kind(`${error.message} (${code})`, { cause: error })
  if (code === 'ENOSPC' || code === 'EDQUOT') return new SpoolFullError(error.message, { cause: error })
  if (/^E[A-Z]+$/.test(code)) return new SpoolUnavailableError(error.message, { cause: error })
  return error
}
