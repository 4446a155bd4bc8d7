import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs'

/**
 * Makes the file when it is not there, and takes it from everybody but its owner. Not by a umask of the whole daemon:
 * harnesses would inherit that, and write into people's repositories by it.
 */
export function keepPrivate(path: string, beside: readonly string[] = []): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  for (const each of [path, ...beside]) {
    const stat = statSync(each, { throwIfNoEntry: false })
    if (stat?.isFile() === true && (stat.mode & 0o077) !== 0) chmodSync(each, stat.mode & 0o700)
  }
}

/** SQLite gives these the mode of the file itself, when it makes them. */
export const sqliteFiles = (path: string): string[] => [`${path}-wal`, `${path}-shm`]
