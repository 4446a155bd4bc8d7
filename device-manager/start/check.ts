import Database from 'better-sqlite3'

/** Fails where this program cannot become the daemon: a file of it is missing or damaged, or does not fit this machine. */
export async function checkProgram(): Promise<void> {
  await import('./run-daemon.ts')
  // Its compiled part is loaded by the first database.
  new Database(':memory:').close()
}
