import { withCertificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import { z } from 'zod'
import type { ControlRun, ControlStatus, ControlValue } from '../../shared/device/control.ts'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'
import { servedFolder, type ServedFolder } from '../../shared/device/folder-check.ts'
import type { World } from '../../shared/lib/world.ts'
import { ControlError, type ControlHandlers } from './control-socket.ts'
import type { Daemon } from './daemon.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import type { RunState } from '../run/machine.ts'
import { WallError } from '../wall/spec.ts'

export interface ControlContext {
  daemon: Daemon
  places: Places
  world: World
  log: Log
  identity: DeviceIdentity
  version: string
  /** The device's token as it is now. */
  token(): string
  serviceInstalled(): boolean | null
  startedByService: boolean
  /** null: there are no such sessions here, or nothing is known of it. */
  loginSession(): Promise<ControlStatus['loginSession'] | null>
}

const deviceConfig = z
  .object({
    displayName: z.string(),
    maxConcurrent: z.number().int().positive(),
    remoteControlRevoked: z.boolean(),
    folders: z.array(servedFolder).default([]),
  })
  .transform(({ maxConcurrent, ...rest }) => ({ ...rest, capacity: maxConcurrent }))

/** Answers what `svc device ...` asks of the daemon. */
export function controlHandlers(context: ControlContext): ControlHandlers {
  const { daemon, world, log } = context
  let errors = 0
  return {
    status: async () => {
      const session = await context.loginSession()
      return { ...statusOf(context), ...(session && { loginSession: session }) }
    },
    refresh: async () => {
      const config = await fetchConfig(context).catch(() => null)
      if (config !== null) daemon.configure(config)
      const { folders: served } = daemon.machine
      const [readiness, folders] = await Promise.all([
        daemon.surroundings.readinessNow({ askShell: true }),
        inspectAll(config?.folders ?? served.list()),
        served.inspect(),
      ])
      await daemon.readiness.report(60_000)
      return { readiness, folders }
    },
    sync_config: async () => {
      const config = await fetchConfig(context)
      daemon.configure(config)
      return config
    },
    drain: async ({ on }) => {
      daemon.drain.set(on)
      return { draining: on, runs: runsOf(daemon) }
    },
    spool: async () => ({ runs: daemon.spool.runs() }),
    spool_replay: async ({ runId }) => {
      if (!daemon.link.isOpen()) throw new ControlError('not_connected', 'The link to the server is down.')
      if (runId !== undefined && !daemon.spool.runs().some((run) => run.runId === runId))
        throw new ControlError('no_such_run', `The spool holds nothing of ${runId}.`)
      return daemon.replay(runId ?? null)
    },
    test_error: async ({ message }) => {
      errors++
      const errorId = world.uuid()
      log.error({ errorId, count: errors }, message ?? 'test error, asked for by a person')
      return { logPath: context.places.log, errorId, count: errors }
    },
    set_isolation: async ({ isolation }) => {
      try {
        return await daemon.isolation.set(isolation)
      } catch (error) {
        if (error instanceof WallError) throw new ControlError('failed', error.message)
        throw error
      }
    },
    stop: async () => ({ pid: process.pid, runs: runsOf(daemon) }),
  }
}

function statusOf(context: ControlContext) {
  const { daemon, identity } = context
  const now = daemon.describe()
  const spooled = runsInSpool(daemon)
  const installed = context.serviceInstalled()
  return {
    pid: process.pid,
    version: context.version,
    startedAt: daemon.startedAt,
    publicId: identity.publicId,
    deviceId: identity.deviceId,
    displayName: now.displayName,
    server: identity.server,
    link: now.link,
    capacity: now.capacity,
    accepting: now.claimState.accepting,
    reason: now.claimState.reason,
    runs: runsOf(daemon),
    readiness: daemon.surroundings.knownReadiness(),
    spool: {
      rows: spooled.reduce((sum, run) => sum + run.rows, 0),
      bytes: spooled.reduce((sum, run) => sum + run.bytes, 0),
    },
    isolation: daemon.isolation.describe(),
    limits: now.limits,
    service: installed === null ? null : { installed, startedByService: context.startedByService },
  }
}

/** A spool that cannot be read keeps nobody from the rest of the status; `reason` tells of it. */
function runsInSpool(daemon: Daemon): ReturnType<Daemon['spool']['runs']> {
  try {
    return daemon.spool.runs()
  } catch {
    return []
  }
}

const runsOf = (daemon: Daemon): ControlRun[] => daemon.supervisor.active().map(describeRun)

function describeRun(state: RunState): ControlRun {
  return {
    runId: state.runId,
    fence: state.fence,
    state: state.phase,
    agent: state.spec.agent.handle,
    startedAt: state.acceptedAt,
  }
}

/** A few at a time: each starts two processes. */
async function inspectAll(folders: readonly ServedFolder[]): Promise<ControlValue<'refresh'>['folders']> {
  const { checkFolder } = await import('../folders/check.ts')
  const looked: ControlValue<'refresh'>['folders'] = []
  for (let next = 0; next < folders.length; next += 4) {
    const few = folders.slice(next, next + 4).map(async ({ shortId, rootPath }) => {
      const { state, message } = await checkFolder(rootPath)
      return { shortId, rootPath, ok: state === 'ok', message }
    })
    looked.push(...(await Promise.all(few)))
  }
  return looked
}

async function fetchConfig(context: ControlContext): Promise<z.infer<typeof deviceConfig>> {
  const url = `${context.identity.server.replace(/\/+$/, '')}/api/device/config`
  let response: Response
  try {
    response = await fetch(url, {
      headers: { authorization: `Bearer ${context.token()}` },
      signal: AbortSignal.timeout(8_000),
    })
  } catch (error) {
    const text = withCertificateTrouble(`The server ${context.identity.server} cannot be reached`, error)
    throw new ControlError('not_connected', `${text}.`)
  }
  if (!response.ok) throw new ControlError('failed', `The server answered ${response.status}.`)
  const parsed = deviceConfig.safeParse(await response.json().catch(() => null))
  if (!parsed.success) throw new ControlError('failed', 'This daemon cannot read the answer of the server.')
  return parsed.data
}
