import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { processesNaming } from './programs.ts'
import { currentRelease } from '../../scripts/release.ts'

const root = join(import.meta.dirname, '../..')
const cache = join(root, '.cache/sandbox')
const programs = join(cache, 'programs')
/** Where `docker` lies. */
export const engineCommands = join(programs, 'usr/bin')
const postgresFolder = join(cache, 'postgres')
/** Debian's docker-compose, unpacked. */
export const composeFolder = join(cache, 'compose')
const readyMs = 30_000
/** No call takes so long unless the engine hangs, which a test is to say. */
const dockerMs = 300_000
const run = promisify(execFile)

/** A Docker engine of the tests' own: with its own socket and folders, without a network, and stopped by its pid. */
export interface TestEngine {
  socket: string
  /** The folder of what it keeps. */
  data: string
  /** Runs `docker` with this engine. */
  docker(...args: readonly string[]): Promise<string>
  /** The same, without waiting for its end. */
  spawn(...args: readonly string[]): ChildProcessByStdio<null, Readable, null>
  /** Of the process that is there now. */
  readonly pid: number
  /** Power off: no handler of the program runs. */
  kill9(): Promise<void>
  /** Again, after its death. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** Says why there is none here; null: there is (`scripts/fetch-sandbox` has fetched what it needs). */
export function missingEngine(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'sandboxes are tested as root on Linux'
  if (!existsSync(join(programs, 'whole'))) return 'scripts/fetch-sandbox could not fetch an engine'
  return globSync('base-*.tar', { cwd: cache }).length === 0 ? 'scripts/fetch-sandbox could not make a base' : null
}

/** Says why the compose file cannot be tried here, where there is an engine. */
export function missingCompose(): string | null {
  if (!existsSync('/usr/bin/python3')) return "compose needs Debian's Python"
  const isWhole = [composeFolder, postgresFolder].every((folder) => existsSync(join(folder, 'whole')))
  return isWhole ? null : 'scripts/fetch-sandbox could not fetch compose and PostgreSQL'
}

/** This machine lets no engine start, or no container run: it is none of the checkout's faults. */
export class NoEngineError extends Error {}

const environment = {
  ...process.env,
  PATH: [join(programs, 'usr/sbin'), engineCommands, process.env['PATH']].join(':'),
  LD_LIBRARY_PATH: globSync('usr/lib/*-linux-gnu', { cwd: programs })
    .map((folder) => join(programs, folder))
    .join(':'),
}

/** `data`: what it keeps, which the next one may go on with. */
export async function startEngine(data = mkdtempSync(join(tmpdir(), 'svc-engine-data-'))): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-engine-'))
  mkdirSync(data, { recursive: true })
  const socket = join(folder, 'sock')
  const docker = async (...args: readonly string[]) => {
    const options = { env: environment, timeout: dockerMs, killSignal: 'SIGKILL' } as const
    try {
      return (await run(join(engineCommands, 'docker'), ['-H', `unix://${socket}`, ...args], options)).stdout.trim()
    } catch (error) {
      if ((error as { killed?: boolean }).killed !== true) throw error
      throw new Error(`\`docker ${args.join(' ')}\` had not ended after ${dockerMs / 1_000} s`, { cause: error })
    }
  }
  let daemon = await startDaemon({ data, folder, socket, docker })
  return {
    socket,
    data,
    docker,
    spawn(...args) {
      const options = { env: environment, stdio: ['ignore', 'pipe', 'inherit'] as ['ignore', 'pipe', 'inherit'] }
      return spawn(join(engineCommands, 'docker'), ['-H', `unix://${socket}`, ...args], options)
    },
    get pid() {
      return daemon.child.pid!
    },
    async kill9() {
      daemon.child.kill('SIGKILL')
      await daemon.ended
      killContainerd(join(folder, 'exec/containerd/containerd.pid'))
    },
    async start() {
      daemon = await startDaemon({ data, folder, socket, docker })
    },
    async stop() {
      daemon.child.kill('SIGTERM')
      await daemon.ended
      // What an engine that was killed had begun to start is known to nobody.
      for (const { pid } of processesNaming(folder)) {
        const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
        for (const each of [...children.map(Number), pid]) process.kill(each, 'SIGKILL')
      }
      // It leaves the network namespace of builds mounted there.
      for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
        const place = line.split(' ')[1]
        if (place?.startsWith(folder)) await run('umount', [place])
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * It dies with the engine that started it. Where nobody collects what is dead, the next engine would take it for alive by this file, and wait
 * for it.
 */
function killContainerd(file: string): void {
  if (!existsSync(file)) return
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL')
  } catch {
    // It is gone.
  }
  rmSync(file)
}

/** Resolves once it answers. */
async function startDaemon({
  data,
  folder,
  socket,
  docker,
}: Pick<TestEngine, 'data' | 'socket' | 'docker'> & { folder: string }): Promise<{
  child: ChildProcess
  ended: Promise<void>
}> {
  const log = join(folder, 'log')
  const flags = ['bridge=none', 'iptables=false', 'ip6tables=false', 'ip-forward=false', 'ip-masq=false']
  const child = spawn(
    join(programs, 'usr/sbin/dockerd'),
    [
      `--data-root=${data}`,
      `--exec-root=${join(folder, 'exec')}`,
      `--pidfile=${join(folder, 'pid')}`,
      `--host=unix://${socket}`,
      '--storage-driver=overlay2',
      ...flags.map((flag) => `--${flag}`),
    ],
    { env: environment, stdio: ['ignore', openSync(log, 'a'), openSync(log, 'a')] },
  )
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const deadline = Date.now() + readyMs
  for (;;) {
    const isReady = await docker('version').then(
      () => true,
      () => false,
    )
    if (isReady) break
    if (child.exitCode !== null || Date.now() > deadline)
      throw new NoEngineError(`the engine does not start here:\n${readFileSync(log, 'utf8').slice(-2_000)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return { child, ended }
}

/** Of tests that were cut off. */
export async function removeLeft(engine: TestEngine): Promise<void> {
  for (const id of (await engine.docker('ps', '--all', '--quiet')).split('\n'))
    if (id !== '') await engine.docker('rm', '--force', '--volumes', id)
  await engine.docker('volume', 'prune', '--force')
  await engine.docker('network', 'prune', '--force')
}

/** An engine that a test may kill, with the image that the shared one (at `socket`) has by this name. */
export async function startOwnEngine(socket: string, image: string): Promise<TestEngine> {
  const engine = await startEngine(join(cache, 'engine-to-kill'))
  await removeLeft(engine)
  const shared = ['-H', `unix://${socket}`]
  const idOf = (args: readonly string[]) =>
    run(join(engineCommands, 'docker'), [...args, 'image', 'inspect', '--format', '{{.Id}}', image], {
      env: environment,
    }).then(
      ({ stdout }) => stdout,
      () => null,
    )
  const own = ['-H', `unix://${engine.socket}`]
  if ((await idOf(own)) !== (await idOf(shared))) {
    const program = join(engineCommands, 'docker')
    const script = '"$0" -H "$1" save "$3" | "$0" -H "$2" load'
    await run('bash', ['-euo', 'pipefail', '-c', script, program, shared[1]!, own[1]!, image], { env: environment })
    await engine.docker('image', 'prune', '--force')
  }
  return engine
}

/** Builds an image of this name from a folder. */
export async function buildImage(socket: string, name: string, folder: string): Promise<void> {
  const args = ['-H', `unix://${socket}`, 'build', '--quiet', '--network', 'none', '--tag', name, folder]
  await run(join(engineCommands, 'docker'), args, { env: { ...environment, DOCKER_BUILDKIT: '0' } })
}

/** The engine that the tests share, with the base and the image of this checkout; what it has is kept for the next time. */
export async function startSharedEngine(): Promise<TestEngine> {
  const engine = await startEngine(join(cache, 'engine'))
  try {
    await fill(engine)
  } catch (error) {
    await engine.stop()
    throw error
  }
  return engine
}

async function fill(engine: TestEngine): Promise<void> {
  await removeLeft(engine)
  const base = baseFile()
  const has = (image: string) =>
    engine.docker('image', 'inspect', image).then(
      () => true,
      () => false,
    )
  const named = baseName()
  if (!(await has(named)))
    await engine.docker('import', '--change', 'ENV PATH=/usr/local/bin:/usr/bin:/bin', join(cache, base), named)
  await engine.docker('run', '--rm', '--network', 'none', named, 'true').catch((error: unknown) => {
    throw new NoEngineError(`no container runs here: ${String(error).slice(0, 1_000)}`)
  })
  await currentRelease()
  await buildFrom(engine.socket, 'bash', [join(root, 'sandbox/build')])
}

/** Builds what the compose file brings up: `svc-server` of this checkout, and PostgreSQL as `svc-test-postgres`. */
export async function buildDeployment(socket: string): Promise<void> {
  await buildFrom(socket, 'bash', [join(root, 'control-plane/deploy/build')])
  const dockerfile = join(import.meta.dirname, 'postgres-image/Dockerfile')
  const built = ['--tag', 'svc-test-postgres', '--file', dockerfile, postgresFolder]
  await buildFrom(socket, join(engineCommands, 'docker'), ['build'], built)
}

async function buildFrom(socket: string, program: string, first: string[], last: string[] = []): Promise<void> {
  const args = [...first, '--quiet', '--network', 'host', '--build-arg', `BASE=${baseName()}`, ...last]
  await run(program, args, { env: { ...environment, DOCKER_HOST: `unix://${socket}`, DOCKER_BUILDKIT: '0' } })
}

const baseFile = (): string => globSync('base-*.tar', { cwd: cache })[0]!

/** By what it is made of. */
const baseName = (): string => `svc-sandbox-base:${baseFile().replace(/^base-(.{12}).*$/, '$1')}`
