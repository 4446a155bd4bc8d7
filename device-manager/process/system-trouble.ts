// The system refuses something to a program that did nothing wrong: no room, no files, a disk that fails. It may pass.

/** No room on the disk, or in the user's quota. */
export function isDiskFull(error: unknown): boolean {
  return /^(ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)$/.test(codeOf(error))
}

/** The trouble is of the file system, a database file, or the limits on this process, and no mistake of the program. */
export function isSystemTrouble(error: unknown): boolean {
  return /^(E[A-Z0-9]+|SQLITE_\w+)$/.test(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
