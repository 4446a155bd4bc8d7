import { createConnection } from 'node:net'
import type { ControlOp, ControlRequest, ControlValue } from '../../shared/device/control.ts'
import { jsonLine, jsonLineReader, parseJsonText } from '../../shared/lib/lines.ts'
import { CliError } from '../errors/cli-error.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import type { DevicePlaces } from '../machine/paths.ts'

// Asks the daemon of this machine over its control socket. The daemon is the same release, run by the same user, and
// tests hold it to `shared/device/control.ts`. Its values are not parsed again, since loading the schemas would take
// longer than everything else a command does.

const answerMs = 60_000
/** A copy of `controlLimits.replyBytes`, whose file would load the schemas. */
const maxReplyBytes = 16 * 1024 * 1024

/** Fails with exit status 9 when no daemon answers, 1 when it refuses. */
export async function askDaemon<O extends ControlOp>(
  places: DevicePlaces,
  request: Extract<ControlRequest, { op: O }>,
): Promise<ControlValue<O>> {
  const reply = parseJsonText(await exchange(places.socket, jsonLine(request)))
  if (fieldAt(reply, 'ok') === false) {
    const code = textAt(reply, 'error', 'code') ?? 'failed'
    const message = textAt(reply, 'error', 'message') ?? 'The device manager refused without saying why.'
    throw new CliError(`daemon.${code}`, message, { remediation: 'See `svc device logs`.' })
  }
  const value = fieldAt(reply, 'value')
  if (fieldAt(reply, 'ok') !== true || typeof value !== 'object' || value === null) {
    throw noDaemon('The device manager gave an answer that svc cannot read.')
  }
  return value as ControlValue<O>
}

/** Like `askDaemon`, but returns null when no daemon answers. */
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
    const read = jsonLineReader(maxReplyBytes)
    let reply = ''
    // Checking all harnesses takes longer than any other operation, and has limits of its own.
    socket.setTimeout(answerMs, () => socket.destroy(new Error('no answer came in time')))
    socket.on('connect', () => socket.write(line))
    socket.on('data', (chunk: Buffer) => {
      const { lines, isTooLong } = read(chunk)
      reply ||= lines[0] ?? ''
      if (isTooLong) socket.destroy(new Error('the answer is too long'))
    })
    socket.on('end', () => resolve(reply))
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
