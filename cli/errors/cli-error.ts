import type { ExitName } from './exit-codes.ts'

export interface CliErrorOptions {
  /** Default: refused. */
  exit?: ExitName
  /** The next thing to type or do. */
  remediation?: string
  details?: Record<string, unknown>
  cause?: unknown
}

/**
 * A failure that svc itself found. It is shown as an envelope like the server's, with a code that begins with `cli.`.
 */
export class CliError extends Error {
  readonly code: string
  readonly exit: ExitName
  readonly remediation: string | null
  readonly details: Record<string, unknown> | null

  constructor(code: string, message: string, options: CliErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'CliError'
    this.code = `cli.${code}`
    this.exit = options.exit ?? 'refused'
    this.remediation = options.remediation ?? null
    this.details = options.details ?? null
  }
}

/** The part of a command line that the server refused. */
export interface RefusedValue {
  /** `--limit` or `<run>` */
  spelling: string
  /** A sentence about it. */
  message: string
}

/** What a refusal says, in the spelling of the command line. */
export interface RefusedLine {
  values: readonly RefusedValue[]
  /** A value does not have its form: the line cannot be read. */
  isUsage: boolean
}

/** A refusal by the server. `body` is its JSON as it came, or its text. */
export class ApiFailure extends Error {
  readonly status: number
  readonly body: unknown
  /** The envelope's code; null for the plain errors of older routes and for answers that are not the server's. */
  readonly code: string | null
  readonly line: RefusedLine | null

  constructor(status: number, body: unknown, line: RefusedLine | null = null) {
    const { code, message } = describeBody(body)
    super(message ?? `The server answered with status ${status}.`)
    this.name = 'ApiFailure'
    this.status = status
    this.body = body
    this.code = code
    this.line = line
  }

  /** The same refusal, told by what stands in the command line. */
  spelled(line: RefusedLine): ApiFailure {
    return new ApiFailure(this.status, this.body, line)
  }

  get exit(): ExitName {
    if (this.line?.isUsage === true) return 'usage'
    return this.status === 401 ? 'not_signed_in' : 'refused'
  }
}

export function usageError(message: string, remediation?: string): CliError {
  return new CliError('usage', message, { exit: 'usage', ...(remediation === undefined ? {} : { remediation }) })
}

function describeBody(body: unknown): { code: string | null; message: string | null } {
  const error = typeof body === 'object' && body !== null ? (body as { error?: unknown }).error : undefined
  if (typeof error === 'string') return { code: null, message: error }
  if (typeof error !== 'object' || error === null) return { code: null, message: null }
  const { code, message } = error as { code?: unknown; message?: unknown }
  return { code: typeof code === 'string' ? code : null, message: typeof message === 'string' ? message : null }
}
