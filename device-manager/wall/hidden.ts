import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { movableAbove, realPath } from './changeable.ts'
import type { HolderPlan } from './namespaces.ts'
import { aliasesOf, cgroupMounts, isWithin, mountShownAt, parseMounts, type Mount } from './mounts.ts'
import { isInside, keptPaths } from './read-only.ts'
import { type WallSpec, WallError } from './spec.ts'

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
function markOf(folder: string): string | null {
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

/** Of the state folder each run needs these, and cannot change them: `svc`, and Node's cache of its code. */
const shownToAll = ['bin', 'compile-cache']

const rootOnlyProc = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus']

/**
 * Returns what the wall hides on this machine, now: svc's folders by their real paths and by each other path at which a mount shows
 * them, and the sockets of programs outside that start whatever they are told.
 */
export function holderPlan(spec: WallSpec): HolderPlan {
  demandUnmoved(spec)
  const stateDir = realFolder(spec.stateDir)
  if (stateDir === null) throw new WallError(`The state folder ${spec.stateDir} cannot be found.`)
  const others = spec.hidden.flatMap((folder) => realFolder(folder) ?? []).filter((each) => !isWithin(each, stateDir))
  const outer = others.find((each) => isWithin(stateDir, each))
  if (outer !== undefined) {
    throw new WallError(`The state folder ${stateDir} lies in ${outer}, another folder of svc. Put the two apart.`)
  }
  const mounts = process.platform === 'linux' ? mountsOf('self') : []
  const ofSvc = [stateDir, ...others]
  const aliases = ofSvc.flatMap((folder) => aliasesOf(folder, mounts)).filter(isSame)
  const folders = [...new Set([...others, ...aliases.map((alias) => alias.path)])]
  const isRoot = process.getuid?.() === 0
  const usual = multiplexers()
  makeDoors([...usual.made, ...spec.doors])
  const cgroups = [
    ...new Set(
      cgroupMounts(mounts)
        .filter(isOnTop)
        .map(({ mountPoint }) => mountPoint),
    ),
  ]
  const found = new Set([...doorsOf(isRoot), ...usual.made, ...usual.found].flatMap((door) => realPath(door) ?? []))
  const told = spec.doors.flatMap((door) => realFolder(door) ?? []).filter((door) => mayHide(door, ofSvc))
  const all = [...new Set([...found, ...told])]
  const readOnly = keptPaths(spec.executed, { isHidden: (file) => ofSvc.some((folder) => isWithin(file, folder)) })
  const keptAliases = readOnly.flatMap((kept) => aliasesOf(kept, mounts)).filter(isSame)
  const kept = [...new Set([...readOnly, ...keptAliases.map((alias) => alias.path)])]
  const pinned = movableAbove([...ofSvc, ...kept])
  const inside = [
    ...mounts.filter((mount) => isInside(mount.mountPoint, kept) && isOnTop(mount)).map(({ mountPoint }) => mountPoint),
    ...pinned.filter((at) => isInside(at, kept)),
  ]
  const readOnlyInside = [...new Set(inside)].filter((at) => !ofSvc.some((folder) => isWithin(at, folder)))
  // One within another is gone with it.
  const doors = all.filter((door) => ![...all, ...ofSvc].some((outer) => outer !== door && isWithin(door, outer)))
  return {
    stateDir,
    shown: shownToAll.filter((name) => existsSync(path.join(stateDir, name))),
    // A folder within another hidden one is gone with it.
    folders: [
      ...folders.filter((folder) => !ofSvc.some((outer) => outer !== folder && isWithin(folder, outer))),
      ...doors.filter((door) => statSync(door).isDirectory()),
    ],
    files: doors.filter((door) => !statSync(door).isDirectory()),
    pinned,
    readOnly: kept,
    readOnlyInside,
    cgroups,
    flags: Object.fromEntries(
      [stateDir, '/proc', ...cgroups, ...kept, ...readOnlyInside].map((at) => [
        at,
        mountShownAt(at, mounts)?.flags ?? [],
      ]),
    ),
    procFiles: isRoot ? rootOnlyProc.filter((file) => existsSync(file)) : [],
    isRoot,
  }
}

/** Throws a WallError when one of the folders is not what it was when it was first hidden. */
function demandUnmoved(spec: WallSpec): void {
  const moved = movedFolder(spec)
  if (moved !== null) throw new WallError(moved)
}

/**
 * Looks from outside at what the holder mounted: each mount is what shows at its path, and the folder of that path is the one
 * that was noted. A program that renamed a folder meanwhile is seen by one of the two.
 */
export function demandCovered(spec: WallSpec, plan: HolderPlan, holder: { pid: number; own: readonly string[] }): void {
  const mounts = mountsOf(holder.pid)
  const shown = (at: string) => {
    const mount = mountShownAt(at, mounts)
    return mount?.mountPoint === at ? mount : null
  }
  const { stateDir, folders, files, pinned, readOnly, readOnlyInside, cgroups, procFiles } = plan
  const isEmptied = (folder: string) => shown(folder)?.type === 'tmpfs' && shown(folder)?.isReadOnly === true
  const open = [stateDir, ...folders].find((folder) => !isEmptied(folder)) ?? pinned.find((folder) => !shown(folder))
  if (open !== undefined) throw new WallError(`${open} was moved while the wall was made.`)
  const readable = files.find((file) => shown(file)?.root !== '/null')
  if (readable !== undefined) throw new WallError(`${readable} could be opened inside of the wall.`)
  const shownInState = plan.shown.map((name) => path.join(stateDir, name))
  const unwritable = [...shownInState, ...cgroups, ...procFiles, ...readOnly, ...readOnlyInside]
  const writable = unwritable.find((file) => !shown(file)?.isReadOnly)
  if (writable !== undefined) throw new WallError(`${writable} could be written to inside of the wall.`)
  // Of a folder that was removed or renamed since, the mount still shows what it was.
  const isOwn = (mount: Mount | null, name: string) => mount?.isReadOnly === false && mount.root.endsWith(`/${name}`)
  const missing = holder.own.find((name) => !isOwn(shown(path.join(stateDir, name)), name))
  if (missing !== undefined)
    throw new WallError(`${missing} of the state folder is not the run's own inside of the wall.`)
  demandUnmoved(spec)
}

/** Null when the run's working folder lies within what is hidden from it. */
export function hiddenFolderAround(spec: WallSpec, cwd: string): string | null {
  const real = realFolder(cwd)
  if (real === null) return null
  return [spec.stateDir, ...spec.hidden].find((folder) => isWithin(real, realFolder(folder) ?? folder)) ?? null
}

/** Sockets by which any program of this user has another one started outside of the wall: the session bus, systemd's own. */
function doorsOf(isRoot: boolean): string[] {
  const runtime = runtimeFolder()
  const ofSystem = isRoot ? ['/run/systemd/private', '/run/dbus/system_bus_socket'] : []
  return [`${runtime}/bus`, `${runtime}/systemd`, ...ofSystem]
}

/**
 * Folders with the sockets of terminal multiplexers, in the usual places. `made`: those that this user's programs make by
 * themselves. `found`: those that the system, or a person, makes.
 */
function multiplexers(): { made: string[]; found: string[] } {
  const uid = process.getuid?.() ?? 0
  const runtime = runtimeFolder()
  return {
    made: [`/tmp/tmux-${uid}`, `${runtime}/tmux-${uid}`, `${runtime}/zellij`, `${runtime}/systemd`],
    found: ['/run/screen', '/tmp/screens', '/tmp/uscreens', path.join(homedir(), '.screen'), `/tmp/zellij-${uid}`],
  }
}

const runtimeFolder = () => `/run/user/${process.getuid?.() ?? 0}`

/** A folder that a variable names may be any: without the home folder, or one above svc's own, no run could start. */
const mayHide = (door: string, ofSvc: readonly string[]) =>
  ![homedir(), ...ofSvc].some((folder) => isWithin(realFolder(folder) ?? folder, door))

/**
 * A door that is opened while a run lives would be open to it. So folders in which programs make theirs are there before,
 * as these programs make them, where the system has the folder above.
 */
function makeDoors(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      mkdirSync(folder, { mode: 0o700 })
    } catch {
      // It is there, or it is nobody's to make.
    }
  }
}

function realFolder(folder: string): string | null {
  const real = realPath(folder)
  return real !== null && statSync(real, { throwIfNoEntry: false })?.isDirectory() === true ? real : null
}

const mountsOf = (pid: number | 'self') => parseMounts(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))

/** Not covered by a later mount, and where this user can look: what it cannot reach a run cannot reach either. */
function isOnTop({ mountPoint, device }: Mount): boolean {
  try {
    const { dev } = statSync(mountPoint)
    return device === `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`
  } catch {
    return false
  }
}

/** A later mount may cover the path, so that it shows something else by now. */
function isSame(alias: { path: string; of: string }): boolean {
  const [there, here] = [alias.path, alias.of].map((each) => statSync(each, { throwIfNoEntry: false }))
  return (
    there !== undefined && here !== undefined && there.isDirectory() && there.dev === here.dev && there.ino === here.ino
  )
}
