import Database from 'better-sqlite3'

/**
 * Claims the file for one control plane: a second one would give out leases that the first knows nothing of. Node has no file lock of its
 * own, so it is that of an empty SQLite file beside it, which the system takes from a process that dies. Returns the function that lets go
 * of it, or null when another process has it.
 */
export function claimSqliteFile(path: string): (() => void) | null {
  // A server that was just told to stop may need a moment.
  const lock = new Database(`${path}.lock`, { timeout: 2_000 })
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if ((error as { code?: unknown }).code === 'SQLITE_BUSY') return null
    throw error
  }
  return () => lock.close()
}
