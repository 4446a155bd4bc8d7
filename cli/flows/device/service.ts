import type { CommandContext, Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { devicePlaces } from '../../machine/paths.ts'
import { askService } from '../../device/service-program.ts'

// `device install-service` and `uninstall-service`, for a systemd user unit on Linux and a launchd agent on macOS.

export const deviceInstallService: Flow = async (context) => {
  refuseInRun(context)
  const { env, out } = context
  const installed = await askService(await devicePlaces(env), 'install')
  await out.result(installed, { look: 'device install-service' })
  for (const { message, fix } of installed.warnings) out.message(`svc: warning: ${message} Type: ${fix}`)
  if (installed.tookOver !== null)
    out.message(`svc: the device manager that was started by hand (pid ${installed.tookOver}) was replaced.`)
  out.message(
    installed.changed
      ? `svc: ${installed.manager} keeps the device manager running from now on (pid ${installed.pid}).`
      : `svc: the service was installed already; ${installed.manager} keeps the device manager running.`,
  )
}

export const deviceUninstallService: Flow = async (context) => {
  refuseInRun(context)
  const { env, out } = context
  const { changed, file } = await askService(await devicePlaces(env), 'uninstall')
  await out.result({ changed, file }, { look: 'device install-service' })
  out.message(
    changed
      ? 'svc: the service is gone, and the device manager stopped. `svc device connect` starts it by hand.'
      : 'svc: there was no service to uninstall.',
  )
}

function refuseInRun({ env }: CommandContext): void {
  if (env.run === null) return
  throw usageError("The service is its owner's, and not to be changed within a run.", 'Type this in your own shell.')
}
