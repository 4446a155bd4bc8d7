import {
  serviceActions,
  serviceReply,
  type ServiceAction,
  type ServiceErrorCode,
  type ServiceValue,
} from '../../shared/device/service.ts'
import { ConfigError } from '../setup/config.ts'
import { machineContext, serviceContext, type ServiceContext, type ServiceSystem } from './context.ts'
import { status } from './doctor.ts'
import { install } from './install.ts'
import { ServiceError } from './service-error.ts'
import { restart, start, stop } from './start.ts'
import { stateFolderParts } from './state-folder.ts'
import { uninstall } from './uninstall.ts'

const actions: { [A in ServiceAction]: (context: ServiceContext) => Promise<ServiceValue<A>> } = {
  install,
  uninstall,
  start,
  stop,
  restart,
  status,
}

/**
 * `svc-device service ACTION [--system --user ACCOUNT]`, and `service part PART`, which root has an account type (account-folder.ts): the reply as a value of `serviceReply`, and the exit status.
 */
export async function runServiceCommand(
  args: readonly string[],
  system: ServiceSystem,
): Promise<{ reply: unknown; exitStatus: number }> {
  const [word, ...rest] = args
  const action = serviceActions.find((each) => each === word)
  const part = stateFolderParts.find((each) => word === 'part' && each === rest[0])
  const user = rest.length === 3 && rest[0] === '--system' && rest[1] === '--user' ? rest[2] : undefined
  if (part === undefined && (action === undefined || (rest.length > 0 && user === undefined))) {
    const error = { code: 'usage', message: 'There is no such command.', remediation: usage } as const
    return { reply: serviceReply.parse({ ok: false, error }), exitStatus: 2 }
  }
  try {
    if (part !== undefined)
      return { reply: { ok: true, value: (await serviceContext(system).state[part]()) ?? null }, exitStatus: 0 }
    const context = user === undefined ? serviceContext(system) : await machineContext(system, user)
    return { reply: { ok: true, value: await actions[action!](context) }, exitStatus: 0 }
  } catch (error) {
    return { reply: serviceReply.parse({ ok: false, error: describe(error) }), exitStatus: 1 }
  }
}

const usage = `Type: svc-device service ${serviceActions.join('|')} [--system --user ACCOUNT]`

function describe(error: unknown): { code: ServiceErrorCode; message: string; remediation: string } {
  if (error instanceof ServiceError) {
    const { code, message, remediation } = error
    return { code, message: message.slice(0, 8000), remediation: remediation.slice(0, 2000) }
  }
  if (error instanceof ConfigError)
    return { code: 'failed', message: error.message, remediation: 'Correct the variable, then type the command again.' }
  const message = error instanceof Error ? error.message : String(error)
  return {
    code: 'failed',
    message: message.slice(0, 8000),
    remediation: 'Correct what the message names, then type the command again.',
  }
}
