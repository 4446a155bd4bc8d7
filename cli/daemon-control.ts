import { createConnection } from 'node:net'
import {
  controlLimits,
  controlReply,
  controlValues,
  type ControlOp,
  type ControlRequest,
  type ControlValue,
} from '../shared/device/control.ts'
import { CliError } from './errors.ts'
import { parseJsonText } from './files.ts'
import type { DevicePlaces } from './paths.ts'

/** Asks the daemon of this machine over its control socket. */

/** Fails with exit status 9 when no daemon answers, 1 when it refuses. */
export async function askDaemon<O extends ControlOp>(
  places: DevicePlaces,
  request: Extract<ControlRequest, { op: O }>,
): Promise<ControlValue<O>> {
  const reply = controlReply.safeParse(parseJsonText(await exchange(places.socket, `${JSON.stringify(request)}\n`)))
  if (!reply.success)
    throw noDaemon('The device manager gave an answer that svc cannot read. They may differ in version.')
  if (!reply.data.ok) {
    const { code, message } = reply.data.error
    throw new CliError(`daemon.${code}`, message, { exit: 'refused', remediation: 'See `svc device logs`.' })
  }
  const value = controlValues[request.op].safeParse(reply.data.value)
  if (!value.success)
    throw noDaemon('The device manager answered something else than was asked. They may differ in version.')
  return value.data as ControlValue<O>
}

/** The same, or null when no daemon answers. */
export async function askDaemonIfThere<O extends ControlOp>(
  places: DevicePlaces,
  request: Extract<ControlRequest, { op: O }>,
): Promise<ControlValue<O> | null> {
  try {
    return await askDaemon(places, request)
  } catch (error) {
    if (error instanceof CliError && error.exit === 'no_daemon') return null
    throw error
  }
}

function exchange(path: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path)
    let text = ''
    socket.setEncoding('utf8')
    // Looking at all harnesses takes longer than any other operation, and has limits of its own.
    socket.setTimeout(controlLimits.replyMs * 6, () => socket.destroy(new Error('no answer came in time')))
    socket.on('connect', () => socket.write(line))
    socket.on('data', (chunk: string) => {
      text += chunk
      if (text.length > controlLimits.replyBytes) socket.destroy(new Error('the answer is too long'))
    })
    socket.on('end', () => resolve(text))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const isDown = error.code === 'ENOENT' || error.code === 'ECONNREFUSED'
      const why = isDown
        ? 'The device manager of this machine does not run.'
        : `The device manager does not answer: ${error.message}.`
      reject(noDaemon(why))
    })
  })
}

function noDaemon(message: string): CliError {
  return new CliError('no_daemon', message, {
    exit: 'no_daemon',
    remediation: 'Type `svc device connect` to start it, `svc device logs` to see what happened.',
  })
}
