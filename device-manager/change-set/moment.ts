import { closeSync, fstatSync, openSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'

/** The time in nanoseconds by the clock of a file system, and the number of its device. */
export interface Moment {
  ns: bigint
  dev: bigint
}

/**
 * The time now by the clock of the file system that holds the folder, which need not be ours. Told by a file that is made there
 * and removed at once. Null: none can be made.
 */
export function momentIn(folder: string): Moment | null {
  const probe = join(folder, `svc-${crypto.randomUUID()}`)
  try {
    const file = openSync(probe, 'wx', 0o600)
    try {
      const { ctimeNs: ns, dev } = fstatSync(file, { bigint: true })
      return { ns, dev }
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
