import Database from 'better-sqlite3'

/**
 * One control plane serves a SQLite file: a second one would give out leases that the first knows nothing of. Node has no
 * file lock of its own, so it is that of an empty SQLite file beside it, which the system takes from whoever dies. Gives
 * what lets go of it, or null when another process has it.
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
