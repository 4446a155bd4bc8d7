import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { WallSpec } from './spec.ts'

/**
 * Hidden folders are named by paths. The wall keeps runs from renaming the folders above (`movableAbove`), but a link in the
 * path can be replaced, and programs outside rename what they like. Then the path shows nothing, or something else, and
 * what should be hidden lies open elsewhere. So each folder is noted when it is first hidden, and no wall is made around
 * another one in its place.
 */
export type Marks = Readonly<Record<string, string>>

/**
 * Tells a folder from another one in its place; null: there is none. Without the device's number, which may be another one
 * after the machine was started anew.
 */
export function markOf(folder: string): string | null {
  try {
    const found = statSync(folder, { bigint: true })
    return found.isDirectory() ? `${found.ino}:${found.birthtimeNs}` : null
  } catch {
    return null
  }
}

export function marksOf(folders: readonly string[]): Marks {
  return Object.fromEntries(folders.flatMap((folder) => [[folder, markOf(folder)] as const]).filter(isMarked))
}

const isMarked = (pair: readonly [string, string | null]): pair is readonly [string, string] => pair[1] !== null

/** A sentence about the first folder that is not what it was; null: all are. */
export function movedFolder({
  stateDir,
  hidden,
  marks,
}: Pick<WallSpec, 'stateDir' | 'hidden' | 'marks'>): string | null {
  for (const folder of [stateDir, ...hidden]) {
    const noted = marks[folder]
    const now = noted === undefined ? null : markOf(folder)
    if (noted === undefined || now === noted) continue
    const what = now === null ? 'is gone' : 'is not the folder that it was'
    return `${folder}, which svc hides from runs, ${what}: it, or a folder above it, was renamed or removed. Look for it, since runs can read it where it is now, and put it back. If you made it anew yourself, type: svc device set --isolation svc`
  }
  return null
}

/** The folders above, outermost first, that this user may rename or remove. */
export function movableAbove(folders: readonly string[]): string[] {
  const above = new Set<string>()
  for (const folder of folders) {
    for (let at = dirname(folder); at !== dirname(at); at = dirname(at)) if (mayChange(dirname(at))) above.add(at)
  }
  return [...above].toSorted((a, b) => a.length - b.length)
}

/** Its owner may make it writable at any time. What is not looked at is taken for changeable. */
function mayChange(folder: string): boolean {
  const uid = process.getuid?.() ?? 0
  const found = statSync(folder, { throwIfNoEntry: false })
  return found === undefined || uid === 0 || found.uid === uid || isWritable(folder)
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}
