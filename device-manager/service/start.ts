import type { ServiceValue } from '../../shared/device/service.ts'
import { refuseOtherStateDir, installedText, type ServiceContext } from './context.ts'
import { daemonStatus, stopDaemon } from './daemon-client.ts'
import { forgetStarts } from './restart-pace.ts'
import { ServiceError } from './service-error.ts'

const startMs = 20_000
const pollMs = 250

/** The daemon that answers, and whether the service started it. */
export async function whoRuns(context: ServiceContext) {
  const daemon = await daemonStatus(context.places)
  const state = await context.manager.state()
  return { daemon, state, isOfService: daemon !== null && daemon.pid === state.pid }
}

/** Starts the service and waits until its daemon answers. Whatever daemon ran must have ended. */
export async function startService(context: ServiceContext): Promise<ServiceValue<'start'>> {
  const { manager, places, world } = context
  forgetStarts(places.starts)
  await manager.start()
  const giveUpAt = world.monotonic() + startMs
  for (;;) {
    const { daemon, state, isOfService } = await whoRuns(context)
    if (daemon !== null && isOfService) return { pid: daemon.pid, link: daemon.link.state }
    if (state.failed !== null || world.monotonic() > giveUpAt) throw silent(context, state.failed)
    await world.sleep(pollMs)
  }
}

function silent({ manager, places }: ServiceContext, failed: string | null): ServiceError {
  const how = failed === null ? `did not answer within ${startMs / 1000} seconds` : `ended at once (${failed})`
  const output = manager.kind === 'systemd' ? 'journalctl --user -u svc-device -n 20' : `tail ${places.out}`
  return new ServiceError(
    'daemon_silent',
    `The device manager that the service started ${how}.`,
    `See \`${output}\` and \`svc device logs\`.`,
  )
}

export async function start(context: ServiceContext): Promise<ServiceValue<'start'>> {
  await mustBeInstalled(context)
  const { daemon, isOfService } = await whoRuns(context)
  if (daemon !== null && isOfService) return { pid: daemon.pid, link: daemon.link.state }
  if (daemon !== null) await stopDaemon(context.places, context.world)
  await context.manager.stop()
  return startService(context)
}

/** Live runs go on in their run hosts; the new daemon takes them up. */
export async function restart(context: ServiceContext): Promise<ServiceValue<'restart'>> {
  await mustBeInstalled(context)
  const { daemon, isOfService } = await whoRuns(context)
  if (daemon !== null && !isOfService) await stopDaemon(context.places, context.world)
  await context.manager.stop()
  return startService(context)
}

/** Stops it until it is started, or the person logs in again. */
export async function stop(context: ServiceContext): Promise<ServiceValue<'stop'>> {
  await mustBeInstalled(context)
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
