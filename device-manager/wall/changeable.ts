import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import path from 'node:path'

/** The folders above, outermost first, that this user may rename or remove. */
export function movableAbove(files: readonly string[]): string[] {
  const above = new Set<string>()
  for (const file of files) {
    for (const at of foldersAbove(file)) if (mayChange(path.dirname(at))) above.add(at)
  }
  return [...above].toSorted((a, b) => a.length - b.length)
}

/** Says whether a program of this user, so also a run, may put something else in its place or write to it. */
export const isReplaceable = (file: string): boolean => [file, ...foldersAbove(file), '/'].some(mayChange)

/** All folders above but the root, innermost first. */
function foldersAbove(file: string): string[] {
  const above: string[] = []
  for (let at = path.dirname(file); at !== path.dirname(at); at = path.dirname(at)) above.push(at)
  return above
}

/** Its owner may make it writable at any time. What is not looked at is taken for changeable. */
function mayChange(file: string): boolean {
  const uid = process.getuid?.() ?? 0
  const found = statSync(file, { throwIfNoEntry: false })
  return found === undefined || uid === 0 || found.uid === uid || isWritable(file)
}

function isWritable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    return false
  }
}

export function realPath(file: string): string | null {
  try {
    return realpathSync.native(file)
  } catch {
    return null
  }
}
