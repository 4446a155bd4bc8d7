import pino from 'pino'

/** One structured line per request and change of state. `err` fields are written with their stack. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: Record<string, unknown>): Log
}

/** JSON lines on standard error; readable ones when it is a terminal. */
export function createLog(options: { level: string; pretty: boolean }): Log {
  return pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    options.pretty
      ? pino.transport({ target: 'pino-pretty', options: { destination: 2, colorize: true } })
      : pino.destination({ dest: 2, sync: false }),
  )
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
}
