import type { BigIntStats } from 'node:fs'
import { lstat, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Differs when the path leads to another file or folder than before, or to a file that was written. Never rejects. */
export async function fingerprintOf(path: string): Promise<string> {
  try {
    const own = await lstat(path, { bigint: true })
    if (!own.isSymbolicLink()) return described(own)
    return `link ${described(own)} to ${await stat(path, { bigint: true }).then(described, codeOf)}`
  } catch (error) {
    return codeOf(error)
  }
}

function described(found: BigIntStats): string {
  const { dev, ino, mode, size, mtimeNs, ctimeNs } = found
  // The times of a folder change with each file in it.
  return found.isDirectory() ? `${dev} ${ino} ${mode}` : `${dev} ${ino} ${mode} ${size} ${mtimeNs} ${ctimeNs}`
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code)

/**
 * Returns the paths at which a change of this one is seen: itself, for a symlink also where it leads, and where it does not exist
 * the first part of it that is missing. Never rejects; returns nothing for a path that cannot be reached.
 */
export async function watchPoints(path: string): Promise<string[]> {
  let missing = path
  for (let at = path; ; at = dirname(at)) {
    try {
      await lstat(at)
      if (at !== path) return [missing]
      const real = await realpath(path).catch(() => path)
      return real === path ? [path] : [path, real]
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || at === dirname(at)) return []
      missing = at
    }
  }
}
