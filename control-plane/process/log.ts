import pino from 'pino'
import { maskOwnTokens } from '../../shared/lib/own-tokens.ts'

/** A log of one structured line per request and change of state. `err` fields are written with their stack. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: Record<string, unknown>): Log
}

/** JSON lines on standard error; readable ones when it is a terminal. */
export function createLog(options: { level: string; pretty: boolean; descriptor?: number }): Log {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: { streamWrite: maskOwnTokens },
    },
    options.pretty
      ? pino.transport({ target: 'pino-pretty', options: { destination: 2, colorize: true } })
      : batchingDestination(options.descriptor ?? 2),
  )
}

const lateMs = 100
const warning = 40

/**
 * Writes lines together with a short delay, as each write costs as much as reading a row. A warning or an error is
 * written at once, with everything before it, and so is everything when the process exits.
 */
function batchingDestination(descriptor: number): pino.DestinationStream {
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 4096 })
  let timer: NodeJS.Timeout | null = null
  const flush = () => {
    timer = null
    destination.flush()
  }
  const stream = {
    // Makes pino set the level of each line here.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string) {
      destination.write(line)
      if (stream.lastLevel >= warning) destination.flush()
      else timer ??= setTimeout(flush, lateMs).unref()
    },
  }
  return stream
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
}
