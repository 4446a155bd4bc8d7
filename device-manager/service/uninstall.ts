import { rmSync } from 'node:fs'
import type { ServiceValue } from '../../shared/device/service.ts'
import { installedText, mustBeAllowed, refuseOtherStateDir, type ServiceContext } from './context.ts'
import { switchLingeringBack } from './linger.ts'
import { ServiceError } from './service-error.ts'
import { whoRuns } from './start.ts'

/**
 * Stops the service and takes it away; one that a failed attempt left in part is taken away too. Refused while its
 * daemon has live runs: their run hosts would go on with nobody to send what they do, or to end them.
 */
export async function uninstall(context: ServiceContext): Promise<ServiceValue<'uninstall'>> {
  const { manager } = context
  mustBeAllowed(context, 'uninstall')
  const text = installedText(context)
  refuseOtherStateDir(context, text)
  try {
    await manager.reach()
  } catch (error) {
    if (text !== null) throw error
    return { file: manager.file, changed: false }
  }
  const { daemon, state, isOfService } = await whoRuns(context)
  if (isOfService && daemon !== null && daemon.runIds.length > 0)
    throw new ServiceError(
      'runs_active',
      `Runs are active on this device: ${daemon.runIds.join(', ')}.`,
      'Wait for them, or cancel them with `svc run cancel RUN`.',
    )
  await manager.disable()
  if (text !== null) {
    rmSync(manager.file, { force: true })
    await manager.reload()
  }
  await switchLingeringBack(context)
  await context.state.forgetStarts()
  return { file: manager.file, changed: text !== null || state.loaded }
}
