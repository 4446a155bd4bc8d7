import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those on the way to it, for their owner's eyes only. Not
 * `recursive` of `mkdir`, which never returns where the system answers ENOENT below a folder that exists, as in /proc.
 */
export function makeFolder(path: string): void {
  const missing: string[] = []
  for (let at = resolve(path); !isFolder(at); at = dirname(at)) missing.unshift(at)
  for (const each of missing) makeOne(each)
}

/** Another process may have made it meanwhile. */
function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isFolder(path)) throw error
  }
}

/** Returns whether the path is a folder. A path that cannot be looked at counts as missing: making it fails with the reason. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return path === dirname(path)
  }
}
