import path from 'node:path'
import { unescapeMount } from '../process/cgroup.ts'

/** One line of /proc/self/mountinfo. */
export interface Mount {
  /** `major:minor` of the file system. */
  device: string
  /** The folder of the file system that is shown. */
  root: string
  mountPoint: string
  /** Type of the file system. */
  type: string
}

export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before, after] = line.split(' - ')
    const [, , device, root, mountPoint] = before!.split(' ')
    const type = after?.split(' ')[0]
    if (device === undefined || root === undefined || mountPoint === undefined || type === undefined) return []
    return [{ device, root: unescapeMount(root), mountPoint: unescapeMount(mountPoint), type }]
  })
}

/** The mounts at which control groups show. Whoever may write there freezes or kills the processes of a group. */
export function cgroupMounts(mounts: readonly Mount[]): Mount[] {
  return mounts.filter(({ type }) => type === 'cgroup' || type === 'cgroup2')
}

/** The same files under another path: `path` shows what lies at `of`. */
export interface Alias {
  path: string
  of: string
}

/**
 * Finds where else `folder`, or a part of it, shows by a bind mount: hidden at one path, it stays visible at the others. A
 * later mount may cover such a path, so the caller compares the two before it trusts the answer.
 */
export function aliasesOf(folder: string, mounts: readonly Mount[]): Alias[] {
  const own = mounts.reduce<Mount | null>((best, mount) => {
    if (!isWithin(folder, mount.mountPoint)) return best
    return best === null || mount.mountPoint.length >= best.mountPoint.length ? mount : best
  }, null)
  if (own === null) return []
  const onDevice = path.posix.join(own.root, path.posix.relative(own.mountPoint, folder))
  return mounts.flatMap((mount) => {
    if (mount.device !== own.device || mount === own) return []
    if (isWithin(onDevice, mount.root)) {
      const shown = path.posix.join(mount.mountPoint, path.posix.relative(mount.root, onDevice))
      return shown === folder ? [] : [{ path: shown, of: folder }]
    }
    if (!isWithin(mount.root, onDevice)) return []
    const part = path.posix.join(folder, path.posix.relative(onDevice, mount.root))
    return part === mount.mountPoint ? [] : [{ path: mount.mountPoint, of: part }]
  })
}

export function isWithin(inner: string, outer: string): boolean {
  const relative = path.posix.relative(outer, inner)
  return relative === '' || (!relative.startsWith('../') && relative !== '..' && !path.posix.isAbsolute(relative))
}
