import path from 'node:path'
import { statSync } from 'node:fs'
import { tried, wallOutcomes, type TriedAct, type WallAct } from '../../shared/runs/wall-acts.ts'
import { identityOf, type ProcessIdentity } from '../process/identity.ts'
import { quote } from './mount-entry.ts'
import { isWithin } from './mounts.ts'

// The forbidden acts of a run behind a device's wall. The shell that becomes the harness tries them as the last thing before that, with
// its own commands: a program that started for them would cost more than all of them.

export interface DeviceActs {
  stateDir: string
  /** Hidden folders but that one. */
  folders: readonly string[]
  /** Names within the state folder of folders of the run. */
  own: readonly string[]
  /** A file that svc executes outside and the run cannot change; null: there is none. */
  program: string | null
  /** Processes outside. */
  outside: readonly ProcessIdentity[]
  /** There are namespaces, and /proc. */
  isLinux: boolean
}

export function deviceActs(
  { stateDir, folders, readOnly }: Pick<DeviceActs, 'stateDir' | 'folders'> & { readOnly: readonly string[] },
  { own, platform }: { own: readonly string[]; platform: NodeJS.Platform },
): DeviceActs {
  const executed = [process.argv[1] ?? '', process.execPath]
  const isKept = (file: string) => readOnly.some((kept) => isWithin(file, kept)) && isFile(file)
  const processes = [process.pid, process.ppid].filter((pid) => pid !== 1)
  return {
    stateDir,
    folders,
    own,
    program: executed.find(isKept) ?? null,
    outside: processes.flatMap((pid) => identityOf(pid) ?? []),
    isLinux: platform === 'linux',
  }
}

const isFile = (file: string) => statSync(file, { throwIfNoEntry: false })?.isFile() === true

/** Prints a line for each act, and ends the shell when one was not refused. What is not special may fail without ending it. */
export function actsScript({ stateDir, folders, own, program, outside, isLinux }: DeviceActs): string {
  const at = (...names: string[]) => quote(path.posix.join(stateDir, ...names))
  const foreign = ['runs', 'hosts', 'own'].map((name) => `${at(name)}/*`).join(' ')
  const ours = [...own.map((name) => at(name)), "*'/*'"].join('|')
  const writing = [at('.svc-trial'), ...(program === null ? [] : [quote(program)])]
  const reading = [at('device-token'), at('journal.db')]
  const inHidden = folders.map((folder) => `${quote(folder)}/*`).join(' ')
  return [
    'svc_say() { echo "act $1 $2" >&2; if [ "$2" = not_refused ]; then svc_open=1; fi; }',
    'svc_act() { if "svc_$1"; then svc_say "$1" not_refused; else svc_say "$1" refused; fi; }',
    `svc_write_outside() { ${anyOf(writing.map((file) => `{ true >>${file}; } 2>/dev/null`))}; }`,
    `svc_read_host() { ${anyOf(reading.map((file) => `{ true <${file}; } 2>/dev/null`))} && return 0; for svc_file in ${inHidden}; do [ -e "$svc_file" ] && return 0; done; return 1; }`,
    `svc_daemon_socket() { [ -S ${at('daemon.sock')} ]; }`,
    `svc_other_run() { for svc_file in ${foreign}; do case $svc_file in ${ours}) ;; *) return 0 ;; esac; done; return 1; }`,
    ...(isLinux
      ? [
          // The start time tells a process from one of the run that has its number.
          'svc_sees() { read -r svc_line 2>/dev/null <"/proc/$1/stat" || return 1; set -- "$2" ${svc_line##*) }; [ "$1" = "${21}" ]; }',
          `svc_ptrace() { ${anyOf(outside.map(({ pid, startTime }) => `svc_sees ${pid} ${quote(startTime)} 2>/dev/null`))}; }`,
          `svc_signal() { ${anyOf(outside.map(({ pid, startTime }) => `{ svc_sees ${pid} ${quote(startTime)} && kill -0 ${pid}; } 2>/dev/null`))}; }`,
          'svc_mount() { svc_held=unknown; while read -r svc_name svc_value; do case $svc_name in CapEff:) svc_held=$svc_value; break ;; esac; done </proc/self/status; case $svc_held in *[!0]*) return 0 ;; esac; return 1; }',
        ]
      : [`svc_signal() { ${anyOf(outside.map(({ pid }) => `kill -0 ${pid} 2>/dev/null`))}; }`]),
    'svc_open=',
    ...triedHere(isLinux).map((act) => `svc_act ${act}`),
    '[ -z "$svc_open" ] || exit 125',
    '',
  ].join('\n')
}

const anyOf = (tests: readonly string[]) => (tests.length === 0 ? 'false' : tests.join(' || '))

const triedHere = (isLinux: boolean): WallAct[] => [
  'write_outside',
  'read_host',
  'daemon_socket',
  'other_run',
  'signal',
  ...(isLinux ? (['ptrace', 'mount'] as const) : []),
]

/** What each act was tried on, for people. */
const triedOn: Partial<Record<WallAct, string>> = {
  write_outside: 'the state folder of the device, and a program of svc',
  read_host: 'the token and the journal of the device, and the other folders of svc',
  daemon_socket: 'the socket of the device manager',
  other_run: 'the folders of other runs',
  signal: 'the device manager and the run host',
  ptrace: 'the device manager and the run host, by their numbers and start times',
  mount: 'the capabilities of the process',
}

/** Why an act is none on a device. */
const allowedHere: Partial<Record<WallAct, string>> = {
  connect_outside: 'A run on a device has the network of its machine.',
  metadata: 'A run on a device has the network of its machine.',
  raw_socket: 'A run on a device has the network of its machine.',
  device: 'Devices of the machine stay as they are.',
  engine_socket: 'A run on a device has the rights of its account.',
}

/** Pure: the acts of which these lines tell; null: none were tried. */
export function actsIn(said: string): TriedAct[] | null {
  const seen = Object.entries(triedOn).flatMap(([act, on]) => {
    const [, told] = new RegExp(`(?:^|\n)act ${act} (\\w+)\n`).exec(said) ?? []
    const outcome = wallOutcomes.find((name) => name === told)
    return outcome === undefined ? [] : [tried(act as WallAct, outcome, on)]
  })
  if (seen.length === 0) return null
  return [...seen, ...Object.entries(allowedHere).map(([act, why]) => tried(act as WallAct, 'not_applicable', why))]
}
