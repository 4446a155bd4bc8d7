import {
  serviceActions,
  serviceReply,
  type ServiceAction,
  type ServiceErrorCode,
  type ServiceValue,
} from '../../shared/device/service.ts'
import { ConfigError } from '../setup/config.ts'
import { serviceContext, type ServiceContext, type ServiceSystem } from './context.ts'
import { status } from './doctor.ts'
import { install } from './install.ts'
import { ServiceError } from './service-error.ts'
import { restart, start, stop } from './start.ts'
import { uninstall } from './uninstall.ts'

const actions: { [A in ServiceAction]: (context: ServiceContext) => Promise<ServiceValue<A>> } = {
  install,
  uninstall,
  start,
  stop,
  restart,
  status,
}

/** `svc-device service ACTION`: the reply as a value of `serviceReply`, and the exit status. */
export async function runServiceCommand(
  args: readonly string[],
  system: ServiceSystem,
): Promise<{ reply: unknown; exitStatus: number }> {
  const action = serviceActions.find((each) => each === args[0])
  if (action === undefined || args.length !== 1) {
    const error = { code: 'usage', message: 'There is no such command.', remediation: usage } as const
    return { reply: serviceReply.parse({ ok: false, error }), exitStatus: 2 }
  }
  try {
    return { reply: { ok: true, value: await actions[action](serviceContext(system)) }, exitStatus: 0 }
  } catch (error) {
    return { reply: serviceReply.parse({ ok: false, error: describe(error) }), exitStatus: 1 }
  }
}

const usage = `Type: svc-device service ${serviceActions.join('|')}`

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
