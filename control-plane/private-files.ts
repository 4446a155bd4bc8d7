import { chmodSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { dataFiles } from '../shared/lib/places.ts'
import { dialectOf } from './db/dialect.ts'

/**
 * Makes new files of this process, and existing files of the data folder, readable by their owner only: the database
 * holds the key that signs run tokens. Returns the files that others could read until now.
 */
export function keepPrivate({ dataDir, databaseUrl }: { dataDir: string; databaseUrl: string }): string[] {
  process.umask(0o077)
  const ours = Object.values(dataFiles).map((name) => join(dataDir, name))
  if (dialectOf(databaseUrl) === 'sqlite') ours.push(...databaseFiles(databaseUrl))
  return ours.filter((path) => {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode
    if (mode === undefined || (mode & 0o077) === 0) return false
    chmodSync(path, mode & 0o700)
    return true
  })
}

/** The database with its `-wal`, `-shm` and `.lock` files, and copies beside it. */
function databaseFiles(path: string): string[] {
  try {
    const names = readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))
    return names.map((name) => join(dirname(path), name))
  } catch {
    // The folder is not there yet, so no files either.
    return []
  }
}
