import type { CommandContext, Flow } from '../../context/context.ts'
import type { ServiceValue } from '../../../shared/device/service.ts'
import { usageError } from '../../errors/cli-error.ts'
import { devicePlaces } from '../../machine/paths.ts'
import { askMachineService, askService } from '../../device/service-program.ts'

// `device install-service` and `uninstall-service`: a systemd user unit on Linux and a launchd agent on macOS; with `--system`, a unit of the
// machine for the device of an account.

export const deviceInstallService: Flow = async (context) => {
  refuseInRun(context)
  const { out } = context
  const installed = await ask(context, 'install')
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
  const { out } = context
  const { changed, file } = await ask(context, 'uninstall')
  await out.result({ changed, file }, { look: 'device install-service' })
  out.message(
    changed
      ? 'svc: the service is gone, and the device manager stopped. `svc device connect` starts it by hand.'
      : 'svc: there was no service to uninstall.',
  )
}

async function ask<A extends 'install' | 'uninstall'>(context: CommandContext, action: A): Promise<ServiceValue<A>> {
  const { values, env } = context
  const account = values.local['user']
  if (values.local['system'] !== true) {
    if (account !== undefined) throw usageError('--user is for a service of the machine.', 'Add --system.')
    return askService(await devicePlaces(env), action)
  }
  if (typeof account !== 'string')
    throw usageError(
      'A service of the machine runs under an account, which is not guessed.',
      'Name one that is for agents alone: --system --user ACCOUNT',
    )
  return askMachineService(account, action)
}

function refuseInRun({ env }: CommandContext): void {
  if (env.run === null) return
  throw usageError("The service is its owner's, and not to be changed within a run.", 'Type this in your own shell.')
}
