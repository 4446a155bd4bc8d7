import { statSync } from 'node:fs'
import { isReplaceable, realPath } from './changeable.ts'
import { isWithin } from './mounts.ts'
import type { ExecutedPaths, WallSpec } from './spec.ts'

// What svc executes outside of a wall is read-only inside: else a run that writes to a program of svc, or puts another one in
// its place, is outside as soon as svc starts that program.

/**
 * The system's own folders. Only root changes them, and root owns the shell, the C library and git as well, so nothing is won by
 * keeping one program in there; package managers, which rename and link between these folders, would fail.
 */
const ofSystem = /^\/(?:usr\/(?!local\/)|s?bin\/|lib\w*\/|etc\/|nix\/store\/|System\/)/

export const isOfSystem = (file: string): boolean => ofSystem.test(file)

/** The real paths that become read-only. A part of a folder that becomes read-only, or of a hidden one, is not listed. */
export function keptPaths(
  { always, checkout }: ExecutedPaths,
  { isHidden }: { isHidden: (file: string) => boolean },
): string[] {
  const all = [...always, ...(checkout === null ? [] : [checkout])]
  const real = [...new Set(all.flatMap((file) => realPath(file) ?? []))]
  const kept = real.filter((file) => !isHidden(file) && !isOfSystem(file) && mayBeChanged(file))
  return kept.filter((file) => !kept.some((outer) => outer !== file && isWithin(file, outer)))
}

/** A folder that this user may not write to may have others in it where he may. */
const mayBeChanged = (file: string): boolean =>
  statSync(file, { throwIfNoEntry: false })?.isDirectory() === true || isReplaceable(file)

/** Says whether it is a part of one of the folders, which say nothing about what is mounted within them. */
export const isInside = (at: string, folders: readonly string[]): boolean =>
  folders.some((folder) => at !== folder && isWithin(at, folder))

/**
 * Returns the wall of a run that works in `cwd`. In the checkout that svc runs from it may change the sources, which is its work, but
 * neither what was made of them nor the packages. By the folder of the run alone: its owner chose that, while what lies in it, such as a
 * `.git` that names another repository, may be the work of an earlier run.
 */
export function specInFolder(spec: WallSpec, cwd: string): WallSpec {
  return isInCheckout(spec, cwd) ? { ...spec, executed: { ...spec.executed, checkout: null } } : spec
}

export function isInCheckout({ executed: { checkout } }: Pick<WallSpec, 'executed'>, cwd: string): boolean {
  const [folder, root] = [realPath(cwd), checkout === null ? null : realPath(checkout)]
  return folder !== null && root !== null && isWithin(folder, root)
}
