import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  brokerHello,
  brokerPort,
  runnerStatus,
  sandboxFacts,
  sandboxIdentity,
  sandboxVariable,
  waitingSandbox,
  type SandboxIdentity,
  type WaitingSandbox,
} from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { version } from '../../shared/lib/version.ts'
import type { Daemon } from '../daemon/daemon.ts'
import { createStreamLog } from '../log/log.ts'
import { proxyVariables } from '../harness/parts/broker-way.ts'
import { startHost, startHostProcess } from '../run/hosts/host-process.ts'
import { awaitFile } from '../sandbox/awaited-file.ts'
import { forward } from '../sandbox/forwarder.ts'
import { clear, isFolder, tidyLeftState } from '../sandbox/left-state.ts'
import { trySandboxActs } from '../wall/sandbox-acts.ts'
import { writeSettings } from '../isolation/setting.ts'
import { readConfig } from '../setup/config.ts'
import { placesIn, type Places } from '../setup/places.ts'
import { compileForSpeed } from './compiler.ts'

/** A sandbox that is given no run within this time has nothing to do. */
const idleMs = 120_000
/** A runner that is to tell what a run left, and finds nothing, leaves so long after the server knows it. */
const nothingLeftMs = 3_000
/** A runner that must go has this long to end its harness. */
const lastWorkMs = 20_000
/** Whom the programs take themselves for while the image is built. */
const rehearsing: WaitingSandbox & Partial<SandboxIdentity> = {
  publicId: 'rehearsal',
  deviceId: 'rehearsal',
  displayName: 'Rehearsal',
  size: 'small',
  network: 'none',
}
/** Stands for the token of a runner that waits for its own, and is shown to nobody. */
const noToken = 'none'

/**
 * The runner in a sandbox: the daemon of a device that takes one run and leaves once the control plane has all of it. One that is made
 * ahead of its run does all that it can before it is told who it is. Exit status: 0 when its run was closed, else one of `runnerStatus`.
 * `isRehearsal`: the image is built. It does what one does that is made ahead, and leaves, so that Node keeps what it compiled.
 */
export async function runSandbox({ isRehearsal }: { isRehearsal: boolean }): Promise<void> {
  const world = realWorld
  const work = isRehearsal ? mkdtempSync(join(tmpdir(), 'svc-rehearsal-')) : sandboxPlaces.work
  const folders = { stateDir: join(work, 'runner'), homeDir: join(work, 'home') }
  const known = isRehearsal ? rehearsing : readOwn()
  if (known.isTrial === true) {
    const { hostFolder = null, network } = known
    const svcTrial = await trySandboxActs({ work: sandboxPlaces.work, hostFolder, network })
    process.stdout.write(`${JSON.stringify({ svcTrial })}\n`, () => process.exit(0))
    return
  }
  const { token = noToken, lost, publicId, deviceId, displayName, broker: remote } = known
  if (known.resumes === true) clear(folders.stateDir)
  // A link or a pipe is no place to work in.
  if (isFolder(folders.homeDir) === false) clear(folders.homeDir)
  const mostBytes = known.diskBytes ?? Number.POSITIVE_INFINITY
  const taken = lost === undefined ? [] : orSpoilt(() => tidyLeftState(placesIn(folders.stateDir), { mostBytes }))
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true, mode: 0o700 })
  Object.assign(process.env, { HOME: folders.homeDir }, proxyVariables)
  const read = readConfig(process.env, { homeDir: folders.homeDir, shell: '/bin/bash' })
  const config = { ...read, ...folders, reconnectMinMs: 200, reconnectMaxMs: 5_000 }
  const places = placesIn(config.stateDir)
  if (existsSync(sandboxPlaces.compiled)) places.compileCache = sandboxPlaces.compiled
  const log = createStreamLog(process.stderr, { level: config.logLevel, world })
  for (const told of taken) log.warn({}, `what the run left was not as its runner made it: ${told}`)
  const way = remote
    ? { host: remote.host, port: remote.port, hello: brokerHello(remote.sandbox, remote.key) }
    : { path: join(sandboxPlaces.broker, sandboxPlaces.socket) }
  // Nothing is tried of the walls of what builds the image.
  if (!isRehearsal) process.env[sandboxVariable] = JSON.stringify(sandboxFacts.parse(known))
  // While this process loads the rest. One that waits for its run has its host by `standBy`, and one that tells what a run left needs none.
  const earlyHost =
    token === noToken || lost !== undefined ? null : startHost(world.id('h'), { ...config, places, purpose: 'run' })
  const daemonModule = await import('../daemon/daemon.ts')
  // An image may be built in the network of a machine where the port is a server's.
  const broker = await forward(way, { port: isRehearsal ? 0 : brokerPort })
  const identity = { publicId, deviceId, displayName, server: `http://127.0.0.1:${broker.port}` }
  log.info({ version, sandbox: identity.publicId }, 'runner starting')

  let exiting = false
  const exit = async (code: number) => {
    if (exiting) return
    exiting = true
    log.info({ code }, 'runner ends')
    await daemon.stop().catch((error: unknown) => log.error({ err: error }, 'the runner did not stop cleanly'))
    process.exit(code)
  }
  const makeDaemon = () => {
    writeSettings(places.settings, { isolation: 'off', folders: {} })
    return new daemonModule.Daemon({
      config,
      places,
      world,
      log,
      identity,
      token,
      keepsToken: false,
      isFixed: true,
      ...(earlyHost && { earlyHost }),
      version,
      ...(lost !== undefined && { lost: { exitReason: 'sandbox_lost' as const, message: lost } }),
      onWork: compileForSpeed,
      // The container is the wall.
      executed: async () => ({ paths: { always: [], checkout: null }, gaps: [] }),
      onRefused: (refused) => {
        if (refused !== null) log.error(refused, 'the server refuses this sandbox')
        else if (lost !== undefined) world.after(nothingLeftMs, leaveIfIdle)
      },
      onFatal: (reason, text) => {
        log.error({ reason }, text)
        void whenQuiet(daemon).then(() => exit(runnerStatus.refused))
      },
      onForgotten: () => void exit(0),
    })
  }
  const daemon = lost === undefined ? makeDaemon() : orSpoilt(makeDaemon)
  const leaveIfIdle = () => {
    if (daemon.supervisor.list().length === 0) void exit(runnerStatus.noRun)
  }
  process.on('SIGTERM', () => void exit(0))
  process.on('SIGINT', () => void exit(0))
  if (token === noToken) {
    await daemon.standBy()
    if (isRehearsal) {
      await rehearseOthers(startHostProcess('rehearsal', { ...config, places, purpose: 'rehearsal' }), places)
      rmSync(work, { recursive: true, force: true })
      return exit(0)
    }
    log.info({}, 'the runner waits to be told who it is')
    await awaitFile(identityFile, world)
    // Its volume was empty when it was started: it never has what a sandbox before left.
    daemon.token.replace(readIdentity().token)
  }
  await daemon.start()
  world.after(idleMs, leaveIfIdle)
}

const identityFile = join(sandboxPlaces.broker, sandboxPlaces.identity)
const waitingFile = join(sandboxPlaces.broker, sandboxPlaces.waiting)

const readIdentity = (): SandboxIdentity => sandboxIdentity.parse(JSON.parse(readFileSync(identityFile, 'utf8')))

/** Who the sandbox is, or what it knows of that so far. */
function readOwn(): WaitingSandbox & Partial<SandboxIdentity> {
  if (existsSync(identityFile)) return readIdentity()
  try {
    return waitingSandbox.parse(JSON.parse(readFileSync(waitingFile, 'utf8')))
  } catch {
    // It was told meanwhile, or nobody has made it ahead.
    return readIdentity()
  }
}

/** The programs that a run starts beside its runner. There is no server that `svc` could reach, and what it says of that is no matter. */
async function rehearseOthers(starting: Promise<ChildProcess>, { bin }: Places): Promise<void> {
  const host = await starting
  host.ref()
  await once(host, 'exit')
  await once(spawn(join(bin, 'svc'), ['whoami'], { stdio: 'ignore' }), 'exit')
}

/** Whatever a run did to its volume, what is wrong with it is said in a sentence, and not tried again. */
function orSpoilt<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    process.stderr.write(
      `What the run left cannot be read: ${error instanceof Error ? error.message : String(error)}\n`,
    )
    process.exit(runnerStatus.spoilt)
  }
}

async function whenQuiet(daemon: Daemon): Promise<void> {
  const deadline = realWorld.monotonic() + lastWorkMs
  while (daemon.supervisor.active().length > 0 && realWorld.monotonic() < deadline) await realWorld.sleep(100)
}
