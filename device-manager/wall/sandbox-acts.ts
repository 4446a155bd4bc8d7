import { execFile } from 'node:child_process'
import { closeSync, constants, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import { tried, type TriedAct, type WallAct } from '../../shared/runs/wall-acts.ts'
import { listPids, readStat } from '../process/proc.ts'
import { parseMounts } from './mounts.ts'

// The forbidden acts of a sandbox. They are tried by the process that starts the harness, which has the account, the namespaces and the
// limits of that. An act that is neither done nor refused in its time was not refused.

export interface ActPlaces {
  /** The volume of the sandbox. */
  work: string
  /** The folder of its broker, as the machine outside calls it; null: it is on another machine. */
  hostFolder: string | null
  /** It has none, or one in which a policy lets nothing through but the way to its broker. */
  network: 'none' | 'policy'
}

interface Attempt {
  isRefused: boolean
  seen: string
}

const refused = (seen: string): Attempt => ({ isRefused: true, seen })
const open = (seen: string): Attempt => ({ isRefused: false, seen })

const actMs = 2_000
const connectMs = 500

/** Takes some 20 ms where all is refused. */
export async function trySandboxActs(places: ActPlaces): Promise<TriedAct[]> {
  const privileged = tryPrivileged()
  const attempts: [WallAct, () => Attempt | null | Promise<Attempt>][] = [
    ['write_outside', writeOutside],
    ['connect_outside', () => (places.network === 'none' ? connectOutside() : connectInCluster())],
    ['read_host', () => readHost(places)],
    ['ptrace', reachNeighbour],
    ['raw_socket', async () => (await privileged).raw],
    ['mount', async () => (await privileged).mount],
    ['device', openDevice],
    ['engine_socket', engineSocket],
    ['metadata', () => connectToAny(metadataAddresses, places.network)],
    ['other_run', () => readOtherRun(places)],
  ]
  return Promise.all(
    attempts.map(async ([act, make]) => {
      const told = await inTime(async () => make())
      if (told === null) return tried(act, 'not_applicable', 'Nothing is known that it could be tried on.')
      return tried(act, told.isRefused ? 'refused' : 'not_refused', told.seen)
    }),
  )
}

/** An error of the attempt itself is no refusal either. */
async function inTime(make: () => Promise<Attempt | null>): Promise<Attempt | null> {
  const late = Promise.withResolvers<Attempt>()
  const timer = setTimeout(() => late.resolve(open(`no answer within ${actMs} ms`)), actMs)
  const failed = make().catch((error: unknown) => open(`it could not be tried: ${String(error)}`))
  return Promise.race([failed, late.promise]).finally(() => clearTimeout(timer))
}

/** The first that was not refused, else what the refusals were. */
function firstOpen(all: readonly Attempt[]): Attempt {
  return all.find(({ isRefused }) => !isRefused) ?? refused([...new Set(all.map(({ seen }) => seen))].join(', '))
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)

/** `does` throws what the system answers. */
function attempt(what: string, does: () => void): Attempt {
  try {
    does()
    return open(what)
  } catch (error) {
    return refused(`${what}: ${codeOf(error)}`)
  }
}

/** Folders that the account of the sandbox could write to if they were not read-only are among them. */
const outside = ['/', '/etc', '/usr', '/usr/local/bin', '/opt/svc', '/var/tmp', '/home', '/run', '/run/svc']
const control = ['/sys/fs/cgroup', '/proc/sys/kernel']
const trigger = '/proc/sysrq-trigger'

function writeOutside(): Attempt {
  const inMemory = mounts().flatMap(({ type, mountPoint }) => (type === 'tmpfs' ? mountPoint : []))
  const folders = [...outside, ...control].filter((folder) => !inMemory.includes(folder))
  const made = folders.map((folder) =>
    attempt(folder, () => {
      const file = join(folder, '.svc-trial')
      closeSync(openSync(file, 'wx'))
      rmSync(file, { force: true })
    }),
  )
  return firstOpen([...made, attempt(trigger, () => closeSync(openSync(trigger, 'w')))])
}

const testNet = '192.0.2.1'
const metadataAddresses = ['169.254.169.254', '100.100.100.200', 'fd00:ec2::254']
/** The system answers so where no packet can leave. Others come from somewhere. */
const nowhere = ['ENETUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EACCES', 'EPERM', 'ENETDOWN']

/** gVisor says so of any address where there is only loopback. Elsewhere it is the answer of somebody on the way. */
const fromWithin = 'EHOSTUNREACH'

const leadsNowhere = (code: string): boolean =>
  nowhere.includes(code) || (code === fromWithin && hasOnlyLoopback(readFileSync('/proc/net/dev', 'utf8')))

/** Whether the system names no other network interface, up or down. */
export function hasOnlyLoopback(interfaces: string): boolean {
  const names = [...interfaces.matchAll(/^\s*([^\s:|]+):/gm)].map(([, name]) => name)
  return names.length > 0 && names.every((name) => name === 'lo')
}

function connectTo(host: string, { port, network }: { port: number; network: ActPlaces['network'] }): Promise<Attempt> {
  const { promise, resolve } = Promise.withResolvers<Attempt>()
  const socket = connect({ host, port })
  const timer = setTimeout(() => {
    const seen = `${host} gave no answer`
    resolve(network === 'policy' ? refused(seen) : open(`${seen}, so something may have left`))
  }, connectMs)
  socket.once('connect', () => resolve(open(`${host} took the connection`)))
  socket.once('error', (error) => {
    const seen = `${host}: ${codeOf(error)}`
    resolve(network === 'policy' || leadsNowhere(codeOf(error)) ? refused(seen) : open(seen))
  })
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

const connectToAny = async (hosts: readonly string[], network: ActPlaces['network'] = 'none'): Promise<Attempt> =>
  firstOpen(await Promise.all(hosts.map((host) => connectTo(host, { port: 80, network }))))

/**
 * What a policy of the cluster refuses gets no answer, or a refusal, as what is not there does. So what proves it is the API of the cluster,
 * which takes the connections of all others at once; a network plugin that ignores policies is seen by it. Exported for its test: the other acts must
 * not be tried outside of a sandbox.
 */
export async function connectInCluster(env = process.env): Promise<Attempt> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (host === undefined || !/^\d{1,5}$/.test(port ?? '')) return open('the cluster does not say where its API is')
  return firstOpen([
    await connectTo(host, { port: Number(port), network: 'policy' }),
    await connectToAny([testNet], 'policy'),
  ])
}

/** Also a network that leads no further has the machine at its other end. */
function connectOutside(): Promise<Attempt> {
  const neighbours = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address, netmask }) => firstOfNetwork(address, netmask))
  return connectToAny([testNet, ...neighbours])
}

function firstOfNetwork(address: string, netmask: string): string {
  const mask = netmask.split('.').map(Number)
  const parts = address.split('.').map((part, at) => Number(part) & mask[at]!)
  return [...parts.slice(0, 3), parts[3]! | 1].join('.')
}

/** Where a mount of the machine would show it. */
const roots = ['/', '/host', '/hostfs', '/rootfs', '/mnt', '/proc/1/root']

function readHost({ hostFolder }: ActPlaces): Attempt | null {
  if (hostFolder === null) return null
  return firstOpen(roots.map((root) => attempt(join(root, hostFolder), () => void readdirSync(join(root, hostFolder)))))
}

/** In a sandbox nothing is older than the runner but the first process, below which it stands. */
function reachNeighbour(): Attempt {
  const own = ancestors(process.pid)
  const since = Number(readStat(own.at(-2) ?? process.pid)?.startTime ?? 0)
  const strangers = [1, ...listPids()].filter(
    (pid) => !own.includes(pid) && Number(readStat(pid)?.startTime ?? since) < since,
  )
  const [stranger] = strangers
  if (stranger === undefined) return refused('no process of others can be seen')
  const memory = attempt(`/proc/${stranger}/mem`, () => closeSync(openSync(`/proc/${stranger}/mem`, 'r+')))
  return open(`${strangers.length} processes of others can be seen; ${memory.seen}`)
}

function ancestors(pid: number): number[] {
  const found: number[] = []
  for (let at = pid; at > 0 && found.length < 100; at = readStat(at)?.ppid ?? 0) found.push(at)
  return found
}

const deviceNames = ['mem', 'kmsg', 'kvm', 'port', 'mapper/control']
/**
 * gVisor has its own ones of these, which all may open, and which are of no use to those who can never have a capability. Under
 * another kernel somebody handed them in.
 */
const ofCapable = ['fuse', 'net/tun']

/** What the kernel of gVisor says of itself in `/proc/version`: always the same, and its name in newer releases. */
export const isGvisor = (version: string): boolean => /gvisor| #1 SMP Sun Jan 10 15:06:54 PST 2016\s*$/i.test(version)

function openDevice(): Attempt {
  const disks = readdirSync('/dev').filter(
    (name) => statSync(join('/dev', name), { throwIfNoEntry: false })?.isBlockDevice() === true,
  )
  const areHarmless = capabilities('CapBnd') === 'none' && isGvisor(readFileSync('/proc/version', 'utf8'))
  return firstOpen(
    [...deviceNames, ...(areHarmless ? [] : ofCapable), ...disks].map((name) =>
      attempt(`/dev/${name}`, () => closeSync(openSync(`/dev/${name}`, constants.O_RDONLY | constants.O_NONBLOCK))),
    ),
  )
}

const engineSockets = [
  '/var/run/docker.sock',
  '/run/docker.sock',
  '/run/podman/podman.sock',
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
]

async function engineSocket(): Promise<Attempt> {
  const attempts = engineSockets.map((path) => {
    const { promise, resolve } = Promise.withResolvers<Attempt>()
    const socket = connect(path)
    socket.once('connect', () => resolve(open(path)))
    socket.once('error', (error) => resolve(refused(`${path}: ${codeOf(error)}`)))
    return promise.finally(() => socket.destroy())
  })
  return firstOpen(await Promise.all(attempts))
}

/** Where engines keep the volumes of all containers. */
const volumes = ['/var/lib/docker/volumes', '/var/lib/containers/storage/volumes', '/var/lib/kubelet/pods']

function readOtherRun({ work, hostFolder }: ActPlaces): Attempt {
  const strange = mounts()
    .filter(({ root, mountPoint }) => /\/volumes\/[^/]+\/_data/.test(root) && mountPoint !== work)
    .map(({ mountPoint }) => mountPoint)
  const folders = [...volumes, ...strange, ...(hostFolder === null ? [] : [dirname(hostFolder)])]
  return firstOpen(folders.map((folder) => attempt(folder, () => void readdirSync(folder))))
}

const mounts = () => parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'))

/** Numbers of the calls `mount` and `umount2`: one that comes about is undone at once. */
const mountCalls: Partial<Record<NodeJS.Architecture, { mount: number; unmount: number }>> = {
  x64: { mount: 165, unmount: 166 },
  arm64: { mount: 40, unmount: 39 },
}
const detached = 2

/** Node makes neither of these calls; Perl is in every Debian. */
async function tryPrivileged(): Promise<{ raw: Attempt; mount: Attempt }> {
  const calls = mountCalls[process.arch]
  const undone = calls && `do { syscall(${calls.unmount}, "/tmp", ${detached}); 0 }`
  const mounting = calls ? `syscall(${calls.mount}, @to, 0, 0) == 0 ? ${undone} : $!+0` : '"-"'
  const program = `my @to = ("none", "/tmp", "tmpfs"); print socket(my $s, 2, 3, 1) ? 0 : $!+0, " ", ${mounting}`
  const said = await new Promise<string>((resolve) => {
    const options = { timeout: actMs, killSignal: 'SIGKILL' as const, env: { PATH: '/usr/bin:/bin' }, cwd: '/' }
    execFile('perl', ['-e', program], options, (error, stdout) => resolve(error === null ? stdout : ''))
  })
  const [raw = '', mount = ''] = said.split(' ')
  return { raw: byAnswer('a raw socket', raw), mount: byAnswer('a file system in memory at /tmp', mount) }
}

function byAnswer(what: string, answer: string): Attempt {
  if (answer === '0') return open(what)
  if (/^\d+$/.test(answer)) return refused(`${what}: ${getSystemErrorName(-Number(answer))}`)
  // No program is there that could try it.
  const effective = capabilities('CapEff')
  const seen = `${what}: no Perl to try it; capabilities ${effective}`
  return effective === 'none' ? refused(seen) : open(seen)
}

/** As the system tells them of this process; `CapBnd`: those that it, and what it starts, could ever have. */
function capabilities(which: 'CapEff' | 'CapBnd'): string {
  const [, set = 'unknown'] =
    new RegExp(`^${which}:\\s*(\\w+)$`, 'm').exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return /^0+$/.test(set) ? 'none' : set
}
