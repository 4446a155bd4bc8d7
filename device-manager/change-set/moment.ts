import { closeSync, fstatSync, openSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The time now in nanoseconds by the clock of the file system that holds the repository, which need not be ours. Told by
 * a file that is made there and removed at once. Null: none can be made.
 */
export function momentIn(commonDir: string): string | null {
  const probe = join(commonDir, `svc-${crypto.randomUUID()}`)
  try {
    const file = openSync(probe, 'wx', 0o600)
    try {
      return String(fstatSync(file, { bigint: true }).ctimeNs)
    } finally {
      closeSync(file)
      unlinkSync(probe)
    }
  } catch {
    return null
  }
}

/** Tells a repository from another one that came into its place. Null: it is gone. */
export function markOf(commonDir: string): string | null {
  const found = statSync(commonDir, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? null : `${found.dev}:${found.ino}:${found.birthtimeNs}`
}
