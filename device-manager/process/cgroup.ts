import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

/**
 * A control group of its own per run, where the system lets this user make one inside the group the daemon is in (systemd:
 * `Delegate=yes`). Nothing leaves it by setsid or double fork, and the kernel ends all of it at once. It is the best of
 * the ways to find a run's processes, and never the only one. Version 2 only. Nothing here throws.
 */
export function makeRunCgroup(runId: string): string | null {
  const folder = placeOf(runId)
  if (folder === null) return null
  try {
    accessSync(path.join(path.dirname(folder), 'cgroup.procs'), constants.W_OK)
    mkdirSync(folder, { recursive: true })
    try {
      accessSync(path.join(folder, 'cgroup.procs'), constants.W_OK)
      accessSync(path.join(folder, 'cgroup.kill'), constants.W_OK)
      return folder
    } catch {
      removeRunCgroup(folder)
      return null
    }
  } catch {
    return null
  }
}

/** The group of a run whose host is gone, where this process is in the group that the host was in; null: there is none. */
export function findRunCgroup(runId: string): string | null {
  const folder = placeOf(runId)
  return folder !== null && existsSync(folder) ? folder : null
}

function placeOf(runId: string): string | null {
  if (process.platform !== 'linux' || !/^[A-Za-z0-9_-]{1,100}$/.test(runId)) return null
  try {
    const parent = ownCgroup(readFileSync('/proc/self/cgroup', 'utf8'), readFileSync('/proc/self/mountinfo', 'utf8'))
    return parent === null ? null : path.join(parent, `svc-${runId}`)
  } catch {
    return null
  }
}

export function processesInCgroup(folder: string): number[] {
  try {
    const own = readFileSync(path.join(folder, 'cgroup.procs'), 'utf8')
    const inner = subfolders(folder).flatMap((each) => processesInCgroup(each))
    return [...own.split('\n').filter(Boolean).map(Number), ...inner]
  } catch {
    return []
  }
}

/** SIGKILL to all in it, at one moment, so that nothing in it can fork away. */
export function killCgroup(folder: string): boolean {
  try {
    writeFileSync(path.join(folder, 'cgroup.kill'), '1')
    return true
  } catch {
    return false
  }
}

/** False while something lives in it. */
export function removeRunCgroup(folder: string): boolean {
  try {
    for (const each of subfolders(folder)) removeRunCgroup(each)
    rmdirSync(folder)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

function subfolders(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(folder, entry.name))
}

/** Folder of this process's group, from the line `0::/path` and the mount of type cgroup2. Exported for its test. */
export function ownCgroup(cgroups: string, mounts: string): string | null {
  const own = /^0::(\/.*)$/m.exec(cgroups)?.[1]
  if (own === undefined) return null
  for (const line of mounts.split('\n')) {
    const [before, after] = line.split(' - ')
    if (before === undefined || after?.startsWith('cgroup2 ') !== true) continue
    const [, , , root, mountPoint] = before.split(' ')
    if (root === undefined || mountPoint === undefined) continue
    // A bind mount may show a part of the tree only.
    const inside = path.posix.relative(unescapeMount(root), own)
    if (!inside.startsWith('..')) return path.posix.join(unescapeMount(mountPoint), inside)
  }
  return null
}

/** mountinfo writes a space as \040. */
export function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}
