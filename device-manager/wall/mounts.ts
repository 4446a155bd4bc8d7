import path from 'node:path'
import { unescapeMount } from '../process/cgroup.ts'

/** One line of /proc/self/mountinfo. */
export interface Mount {
  id: string
  /** Id of the mount that this one is mounted on. */
  parent: string
  /** `major:minor` of the file system. */
  device: string
  /** The folder of the file system that is shown. */
  root: string
  mountPoint: string
  /** Type of the file system. */
  type: string
  isReadOnly: boolean
  /** What else is set for the mount, and not for its file system. */
  flags: readonly string[]
}

export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before, after] = line.split(' - ')
    const [id, parent, device, root, mountPoint, options] = before!.split(' ')
    const type = after?.split(' ')[0]
    if (!id || !parent || !device || root === undefined || mountPoint === undefined || type === undefined) return []
    const set = options?.split(',') ?? []
    const at = unescapeMount(mountPoint)
    return [
      {
        id,
        parent,
        device,
        root: unescapeMount(root),
        mountPoint: at,
        type,
        isReadOnly: set.includes('ro'),
        flags: set.filter(isFlag),
      },
    ]
  })
}

const isFlag = (option: string) => /^(?:nosuid|nodev|noexec|nosymfollow|noatime|nodiratime|relatime)$/.test(option)

/** The mounts at which control groups show. Whoever may write there freezes or kills the processes of a group. */
export function cgroupMounts(mounts: readonly Mount[]): Mount[] {
  return mounts.filter(({ type }) => type === 'cgroup' || type === 'cgroup2')
}

/** The mount that shows at `at`, which is an absolute path without links; null: there is none at all. */
export function mountShownAt(at: string, mounts: readonly Mount[]): Mount | null {
  const ids = new Set(mounts.map(({ id }) => id))
  let shown =
    mounts.find(({ id, parent, mountPoint }) => mountPoint === '/' && (parent === id || !ids.has(parent))) ?? null
  // From the root downwards, as the kernel goes: what a mount covers is not gone into.
  for (let next = shown; next !== null;) {
    shown = next
    const { id } = shown
    next = mounts
      .filter((mount) => mount.parent === id && mount.id !== id && isWithin(at, mount.mountPoint))
      .reduce<Mount | null>(
        (first, mount) => (first && first.mountPoint.length <= mount.mountPoint.length ? first : mount),
        null,
      )
  }
  return shown
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
  // A run waits for hundreds of these, and the general way takes some microseconds.
  if (isPlain(inner) && isPlain(outer)) return inner === outer || inner.startsWith(outer === '/' ? '/' : `${outer}/`)
  const relative = path.posix.relative(outer, inner)
  return relative === '' || (!relative.startsWith('../') && relative !== '..' && !path.posix.isAbsolute(relative))
}

/** Absolute, and without parts that mean another folder. */
const isPlain = (at: string): boolean => at === '/' || (at.startsWith('/') && !/\/\.{0,2}(?:\/|$)/.test(at))
