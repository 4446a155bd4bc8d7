import { daemonPatience } from '../../shared/device/patience.ts'
import type { ServiceValue } from '../../shared/device/service.ts'
import { installedText, mustBeAllowed, refuseOtherStateDir, type ServiceContext } from './context.ts'
import { ServiceError } from './service-error.ts'

const { startMs } = daemonPatience
const pollMs = 250

/** The daemon that answers, and whether the service started it. */
export async function whoRuns(context: ServiceContext) {
  const { daemon } = await context.state.look()
  const state = await context.manager.state()
  return { daemon, state, isOfService: daemon !== null && daemon.pid === state.pid }
}

/** Starts the service and waits until its daemon answers. Whatever daemon ran must have ended. */
export async function startService(context: ServiceContext): Promise<ServiceValue<'start'>> {
  await context.state.forgetStarts()
  await context.manager.start()
  return waitForService(context, null)
}

/** Resolves when the daemon of the service answers, and is another one than `before`. */
async function waitForService(context: ServiceContext, before: number | null): Promise<ServiceValue<'start'>> {
  const { world } = context
  const giveUpAt = world.monotonic() + startMs
  for (;;) {
    const { daemon, state, isOfService } = await whoRuns(context)
    if (daemon !== null && isOfService && daemon.pid !== before) return { pid: daemon.pid, link: daemon.link }
    if (state.failed !== null || world.monotonic() > giveUpAt) throw silent(context, state.failed)
    await world.sleep(pollMs)
  }
}

function silent({ manager }: ServiceContext, failed: string | null): ServiceError {
  const how = failed === null ? `did not answer within ${startMs / 1000} seconds` : `ended at once (${failed})`
  return new ServiceError(
    'daemon_silent',
    `The device manager that the service started ${how}.`,
    `See \`${manager.output}\` and \`svc device logs\`.`,
  )
}

export async function start(context: ServiceContext): Promise<ServiceValue<'start'>> {
  await mustBeInstalled(context)
  const { daemon, isOfService } = await whoRuns(context)
  if (daemon !== null && isOfService) return { pid: daemon.pid, link: daemon.link }
  mustBeAllowed(context, 'start')
  if (daemon !== null) await context.state.stopDaemon()
  await context.manager.stop()
  return startService(context)
}

/** Live runs go on in their run hosts; the new daemon takes them up. */
export async function restart(context: ServiceContext): Promise<ServiceValue<'restart'>> {
  await mustBeInstalled(context)
  const { daemon, isOfService } = await whoRuns(context)
  if (daemon !== null && isOfService && !context.mayChange) return startedAnew(context, daemon.pid)
  mustBeAllowed(context, 'restart')
  if (daemon !== null && !isOfService) await context.state.stopDaemon()
  await context.manager.stop()
  return startService(context)
}

/** Whoever has the account may end its daemon, and the machine's systemd starts it again after some seconds. */
async function startedAnew(context: ServiceContext, pid: number): Promise<ServiceValue<'restart'>> {
  await context.state.stopDaemon()
  return waitForService(context, pid)
}

/** Stops it until it is started, or the person logs in again. */
export async function stop(context: ServiceContext): Promise<ServiceValue<'stop'>> {
  await mustBeInstalled(context)
  mustBeAllowed(context, 'stop')
  const { running } = await context.manager.state()
  await context.manager.stop()
  return { stopped: running }
}

async function mustBeInstalled(context: ServiceContext): Promise<void> {
  const text = installedText(context)
  if (text === null)
    throw new ServiceError('not_installed', 'The service is not installed.', 'Type: svc device install-service')
  refuseOtherStateDir(context, text)
  await context.manager.reach()
}
