import path from 'node:path'
import { openSync, readSync, writeSync } from 'node:fs'
import type { TriedAct } from '../../shared/runs/wall-acts.ts'
import {
  bindReadOnly,
  bindTree,
  emptyReadOnly,
  makeReadOnly,
  mountCommand,
  mountLine,
  quote,
  type MountEntry,
} from './mount-entry.ts'
import { actsIn, actsScript, type DeviceActs } from './device-acts.ts'
import type { WallSpec } from './spec.ts'

/** The last step before the program says it. */
const begunWord = 'begun'

interface ExitOfProgram {
  exitCode: number | null
  signal: string | null
}

/** Holds what the steps that lead into the wall said, on their standard error. */
interface LaunchReport {
  path: string
  /** null: the program began. */
  trouble(): string | null
  /** What was tried of the wall; null: nothing, or not yet. */
  tried(): TriedAct[] | null
  /** Returns how the program itself exited. */
  trueExit(exit: ExitOfProgram): ExitOfProgram
}

const reportBytes = 4096

/**
 * The file is filled and opened before the launch: the steps write over it, which takes no room on a full disk, and what
 * was opened here tells at the end, whatever has become of the folder, the disk or this process's other files.
 */
export function openReport(path: string): LaunchReport {
  const file = openSync(path, 'w+', 0o600)
  writeSync(file, Buffer.alloc(reportBytes))
  const said = () => {
    const buffer = Buffer.alloc(reportBytes)
    const count = readSync(file, buffer, 0, reportBytes, 0)
    return buffer.toString('utf8', 0, count).replace(/\0.*/s, '')
  }
  return {
    path,
    trouble: () => troubleIn(said()),
    tried: () => actsIn(said()),
    trueExit: (exit) => trueExit(said(), exit),
  }
}

/** Pure. Exported for its test. */
export function troubleIn(said: string): string | null {
  if (said.startsWith(`${begunWord}\n`) || said.includes(`\n${begunWord}\n`)) return null
  return said.trim() === '' ? 'the programs that lead into it were stopped.' : said.trim().slice(0, 1000)
}

/**
 * `unshare` ends by the signal that ended its child. Its older versions fail to do so for SIGKILL, whose handling nobody
 * may change: it complains and ends with 1. Pure; exported for its test.
 */
export function trueExit(said: string, exit: ExitOfProgram): ExitOfProgram {
  const complained = new RegExp(`(?:^|\n)${begunWord}\nunshare: `).test(said)
  return complained && exit.exitCode === 1 ? { exitCode: null, signal: 'SIGKILL' } : exit
}

/**
 * Command lines of the wall on Linux. All of it is text, so that it can be read and tested without being run.
 *
 *     bwrap or unshare -> sh (script below) -> cat    the holder: pid 1 of the new namespaces
 *     sh -> nsenter -> unshare --fork -> setpriv -> sh -> the program    enters them
 *
 * The holder makes the mounts and then waits for the end of its input, whose other end the run host holds: when the host dies,
 * however it dies, the holder ends, and the kernel ends all that is left in its pid namespace. It keeps its capabilities, so that
 * nothing inside, which has none, can trace it or open what it has open.
 *
 * Of those who enter, `unshare --fork` stays outside of the pid namespace as the program's parent. It ignores SIGINT and
 * SIGTERM, which go to the whole process group, and ends as its child ended, by the same status or the same signal. bwrap
 * alone would turn a signal into a status and die of the first interrupt.
 */
export const systemPath = '/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin'

/** Programs that both ways need, by name. */
export const enteringPrograms = ['nsenter', 'unshare', 'setpriv', 'mount'] as const

export interface HolderPlan {
  stateDir: string
  /** Folders within the state folder that every run sees and none changes, by their paths in it. */
  shown: readonly string[]
  /** Folders that become empty. */
  folders: readonly string[]
  /** Files and sockets that cannot be opened. */
  files: readonly string[]
  /** Folders above all these that cannot be renamed or removed; outer ones first. */
  pinned: readonly string[]
  /** Files and folders that become read-only: what processes of svc outside of the wall execute. */
  readOnly: readonly string[]
  /** Mounts within these, which become read-only, too. */
  readOnlyInside: readonly string[]
  /** Mounts of control groups, which become read-only. */
  cgroups: readonly string[]
  /** Flags of the mounts that are made read-only, by path. */
  flags: Readonly<Record<string, readonly string[]>>
  /** Files of /proc through which root without capabilities still commands the machine; they become read-only. */
  procFiles: readonly string[]
  isRoot: boolean
}

/**
 * A service's groups belong to its user, so a run could kill or freeze the daemon's. In a cgroup namespace of its own it
 * could mount its group once more, which is the daemon's too; so none can be made.
 */
const noOtherGroups = 'if [ -e /proc/self/ns/cgroup ]; then echo 0 >/proc/sys/user/max_cgroup_namespaces; fi'

/** The new content of the state folder is put together here: a folder in it that is not shown. */
const stageOf = ({ stateDir }: HolderPlan) => path.posix.join(stateDir, 'hosts')

const flagsAt = ({ flags }: HolderPlan, at: string) => flags[at] ?? []

/** The mounts that are made before the state folder shows its new content, in order. `own`: names within it. */
export function mountEntries(plan: HolderPlan, own: readonly string[]): MountEntry[] {
  const { stateDir, shown } = plan
  const stage = stageOf(plan)
  const inStage = (name: string) => [path.posix.join(stateDir, name), path.posix.join(stage, name)] as const
  return [
    // Nobody can rename or remove what is a mount in his own namespace. Linux allows no more than that for folders, so links
    // and renames between these and what lies outside of them fail, as between file systems.
    ...plan.pinned.map((folder) => bindTree(folder, folder)),
    ...shown.flatMap((name) => bindReadOnly(...inStage(name), flagsAt(plan, stateDir))),
    ...own.map((name) => bindTree(...inStage(name))),
    ...plan.folders.map(emptyReadOnly),
    ...plan.files.map((file) => bindTree('/dev/null', file)),
    ...plan.cgroups.map((at) => makeReadOnly(at, flagsAt(plan, at))),
    ...plan.procFiles.flatMap((file) => bindReadOnly(file, file, flagsAt(plan, '/proc'))),
    // The last ones: a folder of the run's own may lie within, and what is mounted from a read-only place is read-only.
    ...plan.readOnly.flatMap((file) => bindReadOnly(file, file, flagsAt(plan, file))),
    ...plan.readOnlyInside.map((at) => makeReadOnly(at, flagsAt(plan, at))),
  ]
}

/**
 * How mounts are made: `at_once` by one program that reads a table of them, where each that starts costs two milliseconds; or
 * `each` by a program of its own. At once, a mount is left out that seems to be there already: whoever makes a wall looks at what
 * is mounted, and makes it by `each` where that is not what it should be.
 */
export type Mounting = 'at_once' | 'each'

function mountLines(
  entries: readonly MountEntry[],
  { mounting, stage }: { mounting: Mounting; stage: string },
): string[] {
  if (mounting === 'each') return entries.map(mountCommand)
  const table = quote(path.posix.join(stage, '.mounts'))
  const lines = entries.map((entry) => quote(mountLine(entry)))
  return [`printf '%s\\n' ${lines.join(' ')} >${table}`, `mount --all --fstab ${table}`, `rm ${table}`]
}

/** Which wall is made, and how. */
export interface Holding {
  mounting: Mounting
  /** Names within the state folder of folders that the run may write to. */
  own: readonly string[]
}

/**
 * Makes all mounts, and prints the holder's pid as the world outside sees it, once all stands. Ends with an error at the first mount
 * that is refused.
 */
export function holderScript(plan: HolderPlan, { mounting, own }: Holding): string {
  const { stateDir, shown } = plan
  const stage = stageOf(plan)
  const made = [...shown, ...own].map((name) => quote(path.posix.join(stage, name)))
  return [
    'set -e',
    // The kernel takes away by itself what ends in the namespace and has no parent there.
    "trap '' CHLD",
    // The old /proc still shows the outer numbers.
    'read -r pid rest </proc/self/stat',
    // By a name of its own: what is mounted below one that it covers is not taken for what is made below it.
    'mount -t proc svc /proc',
    noOtherGroups,
    // Terminals of other runs are files that this user may write to.
    'mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts /dev/pts',
    `mount -t tmpfs -o mode=0700,nosuid,nodev svc ${quote(stage)}`,
    ...(made.length === 0 ? [] : [`mkdir -p -- ${made.join(' ')}`]),
    ...mountLines(mountEntries(plan, own), { mounting, stage }),
    `mount --no-mtab --move ${quote(stage)} ${quote(stateDir)}`,
    mountCommand(makeReadOnly(stateDir, [])),
    'echo "$pid"',
    'exec cat >/dev/null 2>&1',
  ].join('\n')
}

/** Program and arguments that start the holder. */
export function holderCommand(spec: WallSpec, plan: HolderPlan, holding: Holding): string[] {
  const { programs } = spec
  const shell = ['/bin/sh', '-c', holderScript(plan, holding)]
  if (spec.tool === 'bwrap') {
    const namespaces = ['--unshare-user', '--unshare-pid', '--as-pid-1', '--die-with-parent']
    // The capabilities are those over the new namespaces alone.
    return [programs['bwrap']!, ...namespaces, '--cap-add', 'ALL', '--dev-bind', '/', '/', '--', ...shell]
  }
  const namespaces = ['--user', '--map-current-user', '--keep-caps', '--mount', '--propagation', 'slave', '--pid']
  const unshare = [programs['unshare']!, ...namespaces, '--fork', '--kill-child=KILL', '--']
  return [programs['setpriv']!, '--pdeathsig', 'KILL', '--', ...unshare, ...shell]
}

export interface Entering {
  file: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  /** A file of the caller for what the steps before the program have to say (`openReport`). */
  report: string
  /** The forbidden acts are tried before the program begins. */
  triesActs?: boolean
}

export interface Entered {
  file: string
  args: string[]
  env: Record<string, string>
}

/** Set for the program alone: they make a program load code, and the first ones of the chain still run outside. */
const steersPrograms = /^(LD_|DYLD_|GLIBC_TUNABLES$|GCONV_PATH$|LOCPATH$|NLSPATH$|MALLOC_|BASH|SHELLOPTS$|ENV$|PS4$)/

/** Opened outside, where the report lies; the program's own standard error waits as 9. */
const outsideScript = 'exec 9>&2 2<>"$1"; shift; exec "$@"'

/**
 * The folder is entered inside: a working folder that was opened outside leads around all that is hidden. Before the
 * program gets its place, all that is not its own is closed.
 */
const insideScript = [
  'cd -- "$1" || exit 125',
  'count=$2; shift 2',
  'while [ "$count" -gt 0 ]; do export "$1"; shift; count=$((count - 1)); done',
  `echo ${begunWord} >&2`,
  'exec 2>&9 9>&-',
  'exec "$@"',
].join('; ')

/** Returns what goes around the program, outside and inside, in the shell's words. */
export function shells(
  { file, args, env, cwd, report }: Entering,
  acts: DeviceActs | null,
): {
  before: string[]
  after: string[]
  env: Record<string, string>
} {
  const steering = Object.entries(env).filter(([name]) => steersPrograms.test(name) && /^\w+$/.test(name))
  const exported = steering.map(([name, value]) => `${name}=${value}`)
  return {
    before: ['-c', outsideScript, 'svc', report],
    after: [
      '/bin/sh',
      '-c',
      `${acts === null ? '' : actsScript(acts)}${insideScript}`,
      'svc',
      cwd,
      String(exported.length),
      ...exported,
      file,
      ...args,
    ],
    env: Object.fromEntries(Object.entries(env).filter(([name]) => !steersPrograms.test(name))),
  }
}

/** No step of the chain is looked up on the run's own PATH. */
export function enterCommand(
  { programs }: Pick<WallSpec, 'programs'>,
  holder: { pid: number; isRoot: boolean; acts?: DeviceActs | null },
  entering: Entering,
): Entered {
  const { before, after, env } = shells(entering, holder.acts ?? null)
  const namespaces = ['--no-fork', '--preserve-credentials', '--user', '--mount', '--pid']
  const lead = [programs['nsenter']!, ...namespaces, '--target', String(holder.pid), '--']
  const relay = [programs['unshare']!, '--fork', '--']
  const capabilities = ['--ambient-caps=-all', '--inh-caps=-all', ...(holder.isRoot ? ['--bounding-set=-all'] : [])]
  const dropping = [programs['setpriv']!, ...capabilities, '--no-new-privs', '--']
  return {
    file: '/bin/sh',
    args: [...before, ...lead, ...relay, ...dropping, ...after],
    env,
  }
}
