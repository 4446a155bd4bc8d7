import { readFileSync, statSync } from 'node:fs'

/** Of the bytes by which processes that share a database in WAL mode lock it: writer, checkpoint, recovery (sqlite.org/walformat.html). */
const writeLocks = { first: 120, last: 122 }

/**
 * Returns the pids of the processes that hold a lock for writing to the SQLite database at `path`, which is in WAL mode. null where
 * the system does not tell.
 */
export function writeLockHolders(path: string): number[] | null {
  try {
    const { ino } = statSync(`${path}-shm`)
    return parseLocks(readFileSync('/proc/locks', 'utf8'), ino)
  } catch {
    return null
  }
}

/** A line of /proc/locks: `1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 120 120`; who waits for a lock has `->` before its kind. */
export function parseLocks(text: string, inode: number): number[] {
  const pids = new Set<number>()
  for (const line of text.split('\n')) {
    const [, kind, , access, pid, file = '', first, last] = line.trim().split(/\s+/)
    if (kind !== 'POSIX' || access !== 'WRITE' || Number(file.split(':')[2]) !== inode) continue
    const end = last === 'EOF' ? Infinity : Number(last)
    if (Number(first) <= writeLocks.last && end >= writeLocks.first) pids.add(Number(pid))
  }
  return [...pids]
}
