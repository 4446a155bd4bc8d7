import { utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { programUrl } from '../../shared/lib/program-file.ts'
import { keepRelease } from '../../shared/lib/release-use.ts'
import { collectGarbage, optimizeNothing } from '../../shared/lib/v8.ts'
import { stateDirTrouble } from '../../shared/lib/places.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { version } from '../../shared/lib/version.ts'
import { compileForSpeed } from './compiler.ts'
import { account } from '../setup/account.ts'
import { ConfigError, readConfig } from '../setup/config.ts'
import { ControlSocket } from '../daemon/control-socket.ts'
import { controlHandlers } from '../daemon/control-handlers.ts'
import { Daemon } from '../daemon/daemon.ts'
import { forgetRefusal, keepRefusal, readIdentity, SetupError } from '../setup/identity-file.ts'
import { leavePlace, takePlace } from './lock.ts'
import { createFileLog } from '../log/log.ts'
import { placesIn } from '../setup/places.ts'
import { closeInheritedFiles } from '../process/inherited-files.ts'
import { isServiceInstalled, startedByService } from '../service/installed.ts'
import { askLoginSession } from '../service/login-session.ts'
import { toolRunner } from '../service/tool.ts'
import { executedOutside, loadedFiles } from '../isolation/executed.ts'
import { forgetStarts, paceStart } from '../service/restart-pace.ts'
import { SpoolError } from '../spool/errors.ts'
import { roomToStart } from './disk-room.ts'

/** Not to be started again by a service: revoked, retired, another daemon has the place, or the set-up is wrong. */
const doNotRestart = 78
/** Its folder cannot be used now. */
const cannotStart = 74
/** A daemon that must go has this long to end its harnesses. */
const lastWorkMs = 25_000
/** By then the start is over: the link is up, a run host stands by, the harnesses were looked at. */
const settledMs = 2_500
/** Who asks for the status waits for what the system says of the login session. */
const sessionMs = 2_000

/** `service`: what started it and will start it again; null: a person did. */
export async function runDaemon(service: 'systemd' | 'launchd' | null): Promise<void> {
  try {
    await run(service)
  } catch (error) {
    if (error instanceof SetupError || error instanceof ConfigError) {
      process.stderr.write(`${error.message}\n`)
      process.exit(doNotRestart)
    }
    // The file system or a database refused: a full disk may be over at the next start, so a service tries again.
    const code = String((error as { code?: unknown } | null)?.code)
    if (!(error instanceof SpoolError) && !/^(E[A-Z]+|SQLITE_\w+)$/.test(code)) throw error
    process.stderr.write(`The device manager cannot start: ${(error as Error).message}\n`)
    process.exit(cannotStart)
  }
}

async function run(service: 'systemd' | 'launchd' | null): Promise<void> {
  closeInheritedFiles()
  const world = realWorld
  const config = readConfig(process.env, { homeDir: homedir(), shell: account().shell })
  const places = placesIn(config.stateDir)
  const trouble = stateDirTrouble(config.stateDir, process.platform)
  if (trouble !== null) throw new ConfigError(trouble)
  const { identity, token } = readIdentity(places)
  refuseBeside(await roomToStart(places, world))
  if (service !== null) await paceStart(places.starts, world)
  refuseBeside(takePlace(places, { version, startedAt: world.now() }))
  keepRelease(world, (file, at) => utimesSync(file, at, at))
  const log = createFileLog({ path: places.log, level: config.logLevel, world })
  log.info({ pid: process.pid, version, server: identity.server }, 'daemon starting')
  forgetRefusal(places)

  let exiting = false
  const exit = async (code: number) => {
    if (exiting) return
    exiting = true
    log.info({ code }, 'daemon ends')
    optimizeNothing()
    await control.close().catch(() => undefined)
    await daemon.stop().catch((error: unknown) => log.error({ err: error }, 'the daemon did not stop cleanly'))
    leavePlace(places.daemon)
    if (service !== null) forgetStarts(places.starts)
    log.close()
    process.exit(code)
  }
  const daemon = new Daemon({
    config,
    places,
    world,
    log,
    identity,
    token,
    keepsToken: true,
    version,
    onWork: compileForSpeed,
    executed: async () => {
      const { homeDir } = config
      const { platform, env, execPath: node } = process
      const service = await startedByService({ homeDir, platform, userName: account().userName })
      const main = fileURLToPath(programUrl('device-manager'))
      return executedOutside({ node, main, homeDir, platform, env, loaded: loadedFiles(), service })
    },
    onRefused: (refused) => {
      if (refused === null) return forgetRefusal(places)
      log.error(refused, 'the server refuses this device; its live runs go on until it is connected anew')
      keepRefusal(places, { ...refused, at: world.now() }, log)
    },
    onFatal: (reason, text) => {
      log.error({ reason }, text)
      process.stderr.write(`${text}\n`)
      keepRefusal(places, { reason, text, at: world.now() }, log)
      void whenQuiet(daemon).then(() => exit(doNotRestart))
    },
  })
  const control = new ControlSocket({
    path: places.controlSocket,
    log,
    handlers: controlHandlers({
      daemon,
      places,
      world,
      log,
      identity,
      version,
      token: () => daemon.token.value,
      serviceInstalled: () =>
        isServiceInstalled({ homeDir: config.homeDir, platform: process.platform, userName: account().userName }),
      startedByService: service !== null,
      loginSession: async () =>
        process.platform === 'darwin' ? askLoginSession(toolRunner(process.env, sessionMs)) : null,
    }),
    afterReply: (op) => {
      if (op === 'stop') void exit(0)
    },
  })
  process.on('SIGTERM', () => void exit(0))
  process.on('SIGINT', () => void exit(0))
  // The terminal of a daemon in the foreground is gone.
  process.on('SIGHUP', () => void exit(0))
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'uncaught')
    process.stderr.write(`${error.stack ?? error.message}\n`)
    // The run hosts go on; the service starts a new daemon, which finds them.
    leavePlace(places.daemon)
    process.exit(70)
  })
  await control.listen()
  await daemon.start()
  world.after(settledMs, () => {
    // The start leaves garbage, which a small heap for young objects lets grow old. An idle daemon makes too little for a collection of
    // its own accord within days.
    if (daemon.supervisor.active().length === 0) collectGarbage({ isThorough: true })
  })
}

function refuseBeside(holder: number | null): void {
  if (holder !== null)
    throw new SetupError(`Another daemon of this device runs already (pid ${holder}). See: svc device status`)
}

/** Resolves when no harness of the daemon lives, or its time for that is up. */
async function whenQuiet(daemon: Daemon): Promise<void> {
  const deadline = realWorld.monotonic() + lastWorkMs
  while (daemon.supervisor.active().length > 0 && realWorld.monotonic() < deadline) await realWorld.sleep(100)
}
