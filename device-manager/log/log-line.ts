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
