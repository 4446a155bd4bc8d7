import { mkdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { createStream } from 'rotating-file-stream'
import type { World } from '../shared/lib/world.ts'
import { logLevels, logLine, type LogLevel } from './log-line.ts'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface FileLogOptions {
  path: string
  level: LogLevel
  world: Pick<World, 'now'>
}

/** JSON lines in a file that is set aside at 10 MB; five old ones are kept. launchd and systemd rotate nothing. */
export function createFileLog({ path, level: least, world }: FileLogOptions): Log & { close(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const stream = createStream(basename(path), { path: dirname(path), size: '10M', maxFiles: 5, mode: 0o600 })
  // A full disk must not stop the daemon through its own log.
  stream.on('error', () => undefined)
  stream.on('warning', () => undefined)
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (logLevels[level] >= logLevels[least]) stream.write(logLine({ level, at: world.now(), message }, fields))
  }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    close: () => void stream.end(),
  }
}
