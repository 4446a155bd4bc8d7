import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { waitFor } from './programs.ts'

// A machine of its own with a real systemd: a small Debian in namespaces, without a network. It has seen nothing of svc.

const cache = join(import.meta.dirname, '../../.cache/box')
const packages = ['ca-certificates', 'systemd', 'systemd-sysv', 'dbus', 'libpam-systemd', 'bubblewrap', 'git', 'sudo']
/** What lies on the disk of a machine: `base`, or what its owner installed beside it from Debian for a server of several people. */
const additions = { base: [], team: ['postgresql', 'nginx', 'openssl', 'curl'] } as const
export type BoxKind = keyof typeof additions
const diskOf = (kind: BoxKind) => join(cache, `${kind}.tar`)
const groups = '/sys/fs/cgroup/unified'

/** SIGRTMIN+4, by which systemd in a container shuts its machine down. Node knows no name of it. */
const powerOff = 38

/** Why no box can be made here; null: one can. */
export function boxTrouble(kinds: readonly BoxKind[] = ['base']): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'boxes are made by root on Linux'
  if (!existsSync(groups)) return `there are no control groups in ${groups}`
  if (!kinds.every((kind) => existsSync(diskOf(kind))) && spawnSync('mmdebstrap', ['--version']).error)
    return 'mmdebstrap is not installed'
  return null
}

/** Fetches the packages of the Debian once; some minutes. */
function haveDisk(kind: BoxKind): string {
  const disk = diskOf(kind)
  if (existsSync(disk)) return disk
  mkdirSync(cache, { recursive: true })
  const include = `--include=${[...packages, ...additions[kind]].join(',')}`
  const words = ['--quiet', '--variant=minbase', '--format=tar', include, 'bookworm', `${disk}.part`]
  execFileSync('mmdebstrap', words, { stdio: ['ignore', 'inherit', 'inherit'] })
  renameSync(`${disk}.part`, disk)
  return disk
}

export class Box {
  readonly #folder: string
  readonly #group: string
  #process: ChildProcess | null = null

  private constructor(folder: string) {
    this.#folder = folder
    this.#group = join(groups, basename(folder))
  }

  /** A machine that is switched on. */
  static async make(kind: BoxKind = 'base'): Promise<Box> {
    const disk = haveDisk(kind)
    const box = new Box(mkdtempSync(join(tmpdir(), 'svc-box-')))
    mkdirSync(join(box.#folder, 'lower'))
    execFileSync('tar', ['-xpf', disk, '--numeric-owner', '-C', join(box.#folder, 'lower')])
    writeFileSync(join(box.#folder, 'lower/etc/hostname'), 'box\n')
    writeFileSync(join(box.#folder, 'lower/etc/hosts'), '127.0.0.1 localhost box\n')
    await box.switchOn()
    return box
  }

  private async switchOn(): Promise<void> {
    mkdirSync(this.#group, { recursive: true })
    const apart = 'unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child sh "$1" "$2" "$3"'
    const words = [join(import.meta.dirname, 'box-init.sh'), join(this.#folder, 'lower'), this.#folder]
    const enter = `echo $$ >'${this.#group}/cgroup.procs'; exec ${apart}`
    this.#process = spawn('sh', ['-c', enter, 'sh', ...words], { stdio: 'ignore' })
    await waitFor(
      () => ['running', 'degraded'].includes(this.try('systemctl is-system-running').stdout.trim()),
      'the box is up',
      { ms: 120_000 },
    )
  }

  /** Shuts it down in order, and switches it on again with the disk that it has. */
  async reboot(): Promise<void> {
    const [ending, init] = [this.#process, this.#init]
    if (ending === null || init === null) throw new Error('the box is off')
    process.kill(init, powerOff)
    await waitFor(() => ending.exitCode !== null || ending.signalCode !== null, 'the box shuts down', { ms: 120_000 })
    await waitFor(() => removeGroups(this.#group), 'its control groups are empty')
    await this.switchOn()
  }

  /** Pulls the plug and removes all of it. */
  async remove(): Promise<void> {
    const ending = this.#process
    if (ending !== null) {
      const init = this.#init
      if (init !== null) process.kill(init, 'SIGKILL')
      ending.kill('SIGKILL')
      await waitFor(() => ending.exitCode !== null || ending.signalCode !== null, 'the box is off')
    }
    await waitFor(() => removeGroups(this.#group), 'its control groups are empty')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #init(): number | null {
    const pid = this.#process?.pid
    if (pid === undefined) return null
    const children = `/proc/${pid}/task/${pid}/children`
    return existsSync(children) ? Number(readFileSync(children, 'utf8').trim().split(' ')[0]) || null : null
  }

  /** Puts a file of this machine into the folder `/srv` of the box. */
  give(file: string): string {
    copyFileSync(file, `/proc/${this.#init}/root/srv/${basename(file)}`)
    return `/srv/${basename(file)}`
  }

  /** What a line of sh says in it, typed by root. */
  try(line: string, input = ''): { status: number | null; stdout: string; stderr: string } {
    const init = this.#init
    if (init === null) return { status: null, stdout: '', stderr: 'the box is off' }
    const typed = join(this.#group, 'typed')
    mkdirSync(typed, { recursive: true })
    const enter = `echo $$ >'${typed}/cgroup.procs'; exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin nsenter -t ${init} -a sh -c "$1"`
    const { status, stdout, stderr } = spawnSync('sh', ['-c', enter, 'sh', line], {
      input,
      encoding: 'utf8',
      timeout: 240_000,
    })
    return { status, stdout, stderr }
  }

  /** What a line that must succeed prints. */
  type(line: string, input = ''): string {
    const { status, stdout, stderr } = this.try(line, input)
    if (status === 0) return stdout
    throw new Error(`in the box, \`${line}\` ended with ${status}: ${stderr}${stdout}`)
  }
}

/** False while something is in them. */
function removeGroups(group: string): boolean {
  const found = spawnSync('find', [group, '-depth', '-type', 'd'], { encoding: 'utf8' }).stdout
  try {
    for (const each of found.split('\n').filter((line) => line !== '')) rmdirSync(each)
    return true
  } catch {
    return false
  }
}
