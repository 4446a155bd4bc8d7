import { mkdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import pino from 'pino'
import { createStream } from 'rotating-file-stream'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** JSON lines in a file that is set aside at 10 MB; five old ones are kept. launchd and systemd rotate nothing. */
export function createFileLog(path: string, level: string): Log & { close(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const stream = createStream(basename(path), { path: dirname(path), size: '10M', maxFiles: 5, mode: 0o600 })
  // A full disk must not stop the daemon through its own log.
  stream.on('error', () => undefined)
  stream.on('warning', () => undefined)
  const log = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream)
  return Object.assign(log, { close: () => void stream.end() })
}
