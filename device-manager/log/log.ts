import { mkdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { createStream, type RotatingFileStream } from 'rotating-file-stream'
import type { World } from '../../shared/lib/world.ts'
import { maskOwnTokens } from '../../shared/lib/own-tokens.ts'

export const logLevels = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  silent: Number.POSITIVE_INFINITY,
} as const
export type LogLevel = keyof typeof logLevels

/**
 * A line of the log, as the control plane writes its own (level, time, fields, msg). Written here: the library that the
 * control plane uses would be a tenth of what the idle daemon adds to a bare Node.
 */
export function logLine(head: { level: LogLevel; at: number; message: string }, fields: object): string {
  const { level, at, message } = head
  const start = { level: logLevels[level], time: new Date(at).toISOString() }
  try {
    return `${maskOwnTokens(JSON.stringify({ ...start, ...fields, msg: message }, plainValue))}\n`
  } catch {
    // A ring, or a getter that throws: the message is worth more than the fields.
    return `${maskOwnTokens(JSON.stringify({ ...start, msg: message, fields: Object.keys(fields) }))}\n`
  }
}

function plainValue(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (!(value instanceof Error)) return value
  const { name, message, stack, cause } = value
  return {
    ...Object.fromEntries(Object.entries(value)),
    type: name,
    message,
    stack,
    ...(cause === undefined ? {} : { cause }),
  }
}

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** JSON lines on a stream of this process. */
export function createStreamLog(
  stream: Pick<NodeJS.WriteStream, 'write'>,
  { level: least, world }: Omit<FileLogOptions, 'path'>,
): Log {
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (logLevels[level] >= logLevels[least]) stream.write(logLine({ level, at: world.now(), message }, fields))
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

interface FileLogOptions {
  path: string
  level: LogLevel
  world: Pick<World, 'now'>
}

/** The time after a write that failed until the file is opened anew. */
const againMs = 2_000

/**
 * JSON lines in a file that is set aside at 10 MB; five old ones are kept. launchd and systemd rotate nothing. A full disk
 * must not stop the daemon through its own log: lines that cannot be written are dropped, and counted in the first one that
 * can.
 */
export function createFileLog({ path, level: least, world }: FileLogOptions): Log & { close(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let stream: RotatingFileStream | null = null
  let failedAt: number | null = null
  let dropped = 0
  const open = (): RotatingFileStream => {
    const opened = createStream(basename(path), { path: dirname(path), size: '10M', maxFiles: 5, mode: 0o600 })
    opened.on('error', () => {
      // A stream takes nothing more after an error.
      if (stream !== opened) return
      stream = null
      failedAt = world.now()
      opened.destroy()
    })
    opened.on('warning', () => undefined)
    return opened
  }
  const put = (line: string) => {
    if (stream === null && failedAt !== null && Math.abs(world.now() - failedAt) < againMs) return void dropped++
    const to = (stream ??= open())
    const missing = dropped
    dropped = 0
    const note = { level: 'warn', at: world.now(), message: 'log lines could not be written' } as const
    // The last line before may be cut off anywhere.
    const text = missing === 0 ? line : `\n${logLine(note, { lines: missing })}${line}`
    to.write(text, (error) => {
      if (error) dropped += missing + 1
    })
  }
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (logLevels[level] >= logLevels[least]) put(logLine({ level, at: world.now(), message }, fields))
  }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    close: () => void stream?.end(),
  }
}
