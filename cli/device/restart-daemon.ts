import type { ControlStatus } from '../../shared/device/control.ts'
import type { CommandContext } from '../context/context.ts'
import { CliError } from '../errors/cli-error.ts'
import type { DevicePlaces } from '../machine/paths.ts'
import { askDaemon } from './daemon-control.ts'
import { startDaemon, waitForLink, waitUntilStopped } from './daemon-process.ts'
import { askService, serviceOfThisDevice } from './service-program.ts'

/** Stops the daemon where one runs, and starts it; live runs go on. Resolves when the new one has its link. */
export async function restartDaemon(
  context: CommandContext,
  places: DevicePlaces,
  running: ControlStatus | null,
): Promise<ControlStatus> {
  const { out, world } = context
  if ((await serviceOfThisDevice(places)) !== null) {
    // A daemon that systemd or launchd keeps running must be restarted by them, or there would be two.
    await askService(places, 'restart')
    return waitForLink(places, context, { exit: () => null })
  }
  if (running !== null) {
    const { runs } = await askDaemon(places, { op: 'stop' })
    if (runs.length > 0) out.message(`svc: ${runs.length} live runs go on; the new device manager takes them up.`)
    if (!(await waitUntilStopped(places, world))) {
      throw new CliError('daemon_still_runs', `The device manager (pid ${running.pid}) has not ended.`, {
        exit: 'no_daemon',
        remediation: 'See `svc device logs`, and try again.',
      })
    }
  }
  return startDaemon(places, context)
}
