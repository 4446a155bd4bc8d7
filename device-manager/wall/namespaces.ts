import path from 'node:path'
import { begunWord } from './launch-report.ts'
import type { WallSpec } from './spec.ts'

/**
 * Command lines of the wall on Linux. All of it is text, so that it can be read and tested without being run.
 *
 *     bwrap or unshare -> sh (script below) -> cat    the holder: pid 1 of the new namespaces
 *     sh -> nsenter -> unshare --fork -> setpriv -> sh -> the program    enters them
 *
 * The holder makes the mounts, reads which folders are the run's own, and then waits for the end of its input, whose other end the run
 * host holds: when the host dies, however it dies, the holder ends, and the kernel ends all that is left in its pid namespace. It
 * keeps its capabilities, so that nothing inside, which has none, can trace it or open what it has open.
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
  /** Mounts of control groups, which become read-only. */
  cgroups: readonly string[]
  isRoot: boolean
}

/** The new content of the state folder is put together here: a folder in it that is not shown. */
const staging = 'hosts'
/** Where the state folder is seen in its new content, until the run's own folders are. */
export const behind = '.behind'

/** Files of /proc through which root without capabilities still commands the machine. */
const rootOnlyProc = ['sys', 'sysrq-trigger', 'irq', 'bus']

const readOnly = (target: string) => [
  `mount --bind ${quote(target)} ${quote(target)}`,
  `mount -o remount,bind,ro ${quote(target)}`,
]

/**
 * A service's groups belong to its user, so a run could kill or freeze the daemon's. In a cgroup namespace of its own it
 * could mount its group once more, which is the daemon's too; so none can be made.
 */
const closeCgroups = (mounts: readonly string[]) => [
  'if [ -e /proc/self/ns/cgroup ]; then echo 0 >/proc/sys/user/max_cgroup_namespaces; fi',
  ...mounts.map((at) => `mount -o remount,bind,ro ${quote(at)}`),
]

/**
 * Makes all mounts but those of the run's own folders, whose names within the state folder it reads from its input, a line each, up to
 * an empty one. Prints the holder's pid as the world outside sees it, once all stands. Ends with an error at the first mount
 * that is refused.
 */
export function holderScript(plan: HolderPlan): string {
  const { stateDir, shown } = plan
  const stage = path.posix.join(stateDir, staging)
  return [
    'set -e',
    // The kernel takes away by itself what ends in the namespace and has no parent there.
    "trap '' CHLD",
    // The old /proc still shows the outer numbers.
    'read -r pid rest </proc/self/stat',
    'mount -t proc proc /proc',
    // Terminals of other runs are files that this user may write to.
    'mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts /dev/pts',
    // Nobody can rename or remove what is a mount in his own namespace. Linux allows no more than that for folders, so links
    // and renames between these and what lies outside of them fail, as between file systems.
    ...plan.pinned.map((folder) => `mount --rbind ${quote(folder)} ${quote(folder)}`),
    `mount -t tmpfs -o mode=0700,nosuid,nodev svc ${quote(stage)}`,
    `mkdir ${[behind, ...shown].map((name) => quote(path.posix.join(stage, name))).join(' ')}`,
    ...shown.flatMap((name) => {
      const at = path.posix.join(stage, name)
      return [
        `mount --bind ${quote(path.posix.join(stateDir, name))} ${quote(at)}`,
        `mount -o remount,bind,ro ${quote(at)}`,
      ]
    }),
    `mount --rbind ${quote(stateDir)} ${quote(path.posix.join(stage, behind))}`,
    `mount --no-mtab --move ${quote(stage)} ${quote(stateDir)}`,
    ...plan.folders.map((folder) => `mount -t tmpfs -o ro,mode=0700,nosuid,nodev svc ${quote(folder)}`),
    ...plan.files.map((file) => `mount --bind /dev/null ${quote(file)}`),
    ...closeCgroups(plan.cgroups),
    ...(plan.isRoot
      ? rootOnlyProc.map((name) => `if [ -e /proc/${name} ]; then ${readOnly(`/proc/${name}`).join('; ')}; fi`)
      : []),
    `cd ${quote(stateDir)}`,
    'while IFS= read -r own && [ -n "$own" ]; do',
    '  mkdir -p "$own"',
    `  mount --bind ${quote(behind)}/"$own" "$own"`,
    'done',
    // With all mounts below it, of which none can be taken away alone.
    `umount --lazy ${quote(behind)}`,
    `rmdir ${quote(behind)}`,
    'cd /',
    `mount -o remount,bind,ro ${quote(stateDir)}`,
    'echo "$pid"',
    'exec cat >/dev/null 2>&1',
  ].join('\n')
}

/** Program and arguments that start the holder. */
export function holderCommand(spec: WallSpec, plan: HolderPlan): string[] {
  const { programs } = spec
  const shell = ['/bin/sh', '-c', holderScript(plan)]
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
  /** A file of the caller for what the steps before the program have to say (launch-report.ts). */
  report: string
}

export interface Entered {
  file: string
  args: string[]
  env: Record<string, string>
}

/** Set for the program alone: they make a program load code, and the first ones of the chain still run outside. */
const steersPrograms = /^(LD_|DYLD_|GLIBC_TUNABLES$|GCONV_PATH$|LOCPATH$|NLSPATH$|MALLOC_|BASH|SHELLOPTS$|ENV$|PS4$)/

/** Opened outside, where the report lies; the program's own standard error waits as 9. */
export const outsideScript = 'exec 9>&2 2<>"$1"; shift; exec "$@"'

/**
 * The folder is entered inside: a working folder that was opened outside leads around all that is hidden. Before the
 * program gets its place, all that is not its own is closed.
 */
export const insideScript = [
  'cd -- "$1" || exit 125',
  'count=$2; shift 2',
  'while [ "$count" -gt 0 ]; do export "$1"; shift; count=$((count - 1)); done',
  `echo ${begunWord} >&2`,
  'exec 2>&9 9>&-',
  'exec "$@"',
].join('; ')

/** Returns what goes around the program, outside and inside, in the shell's words. */
export function shells({ file, args, env, cwd, report }: Entering): {
  before: string[]
  after: string[]
  env: Record<string, string>
} {
  const steering = Object.entries(env).filter(([name]) => steersPrograms.test(name) && /^\w+$/.test(name))
  const exported = steering.map(([name, value]) => `${name}=${value}`)
  return {
    before: ['-c', outsideScript, 'svc', report],
    after: ['/bin/sh', '-c', insideScript, 'svc', cwd, String(exported.length), ...exported, file, ...args],
    env: Object.fromEntries(Object.entries(env).filter(([name]) => !steersPrograms.test(name))),
  }
}

/** No step of the chain is looked up on the run's own PATH. */
export function enterCommand(
  { programs }: Pick<WallSpec, 'programs'>,
  holder: { pid: number; isRoot: boolean },
  entering: Entering,
): Entered {
  const { before, after, env } = shells(entering)
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

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
