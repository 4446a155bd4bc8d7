import { z } from 'zod'
import { errorCodes, plainErrors, sharedErrors, type ErrorCode, type PlainErrorId } from './error-codes.ts'
import { connectionErrors } from './error-codes-of-things.ts'
import type { ErrorEntry } from './error-entry.ts'

export type { ErrorCode, PlainErrorId } from './error-codes.ts'

export const errorTypes = [
  'invalid_request_error',
  'authentication_error',
  'authorization_error',
  'not_found_error',
  'conflict_error',
  'idempotency_error',
  'external_dependency_error',
  'rate_limit_error',
  'api_error',
] as const
export type ErrorType = (typeof errorTypes)[number]

const typeByStatus: Readonly<Record<number, ErrorType>> = {
  401: 'authentication_error',
  403: 'authorization_error',
  404: 'not_found_error',
  409: 'conflict_error',
  410: 'not_found_error',
  424: 'external_dependency_error',
  429: 'rate_limit_error',
}

/** The four idempotency codes have a type of their own at 409; otherwise the status decides. */
export function errorTypeOf(code: ErrorCode, status: number): ErrorType {
  if (code.startsWith('idempotency_') && status === 409) return 'idempotency_error'
  return typeByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

export const fieldError = z.object({ path: z.string(), message: z.string() })
export type FieldError = z.infer<typeof fieldError>

export const errorEnvelope = z
  .object({
    error: z.object({
      type: z.enum(errorTypes),
      code: z.string().describe('Stable; branch on it.'),
      message: z.string().describe('A sentence for a person; not to be parsed.'),
      requestId: z.string().describe('Equals the Request-Id header of the answer.'),
      param: z.string().optional().describe('The field or header at fault.'),
      details: z
        .record(z.string(), z.unknown())
        .optional()
        .describe('More about it; a validation_error lists the bad fields in `details.fields`.'),
      remediation: z.string().optional().describe('Short name of the fix.'),
      docsUrl: z.string().optional(),
      allowedValues: z.array(z.unknown()).optional().describe('Values that would have worked.'),
    }),
  })
  .meta({ id: 'Error' })
export type ErrorEnvelope = z.infer<typeof errorEnvelope>

/** The envelope of errors that routes of connections raise themselves. */
export const shortErrorEnvelope = z
  .object({
    error: z.object({
      code: z.string().describe('Stable; branch on it.'),
      message: z.string().describe('A sentence for a person; not to be parsed.'),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
  })
  .meta({ id: 'ShortError' })
export type ShortErrorEnvelope = z.infer<typeof shortErrorEnvelope>

export const plainErrorEnvelope = z.object({ error: z.string() }).meta({ id: 'PlainError' })

export interface FailOptions {
  /** A sentence for the caller. Default: the catalogue's. */
  message?: string
  param?: string
  details?: Record<string, unknown>
  allowedValues?: readonly unknown[]
  /** A status that the catalogue lists for the code. Default: the first. */
  status?: number
  headers?: Record<string, string>
  /** The detail for the log only; never sent. */
  logDetail?: unknown
  cause?: unknown
}

/** A refusal that reaches the caller as the standard envelope, or as the short one. Thrown only by `fail`. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly options: FailOptions

  constructor(code: ErrorCode, options: FailOptions = {}) {
    const known: ErrorEntry = errorCodes[code]
    super(options.message ?? known.message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'ApiError'
    this.code = code
    this.options = code === 'validation_error' ? withFields(options, this.message) : options
    this.status = options.status ?? known.status[0]
    if (!known.status.includes(this.status)) throw new RangeError(`${code} is never answered with ${this.status}`)
  }

  toEnvelope(requestId: string): ErrorEnvelope | ShortErrorEnvelope {
    const { param, details, allowedValues } = this.options
    if (hasShortEnvelope(this.code))
      return { error: { code: this.code, message: this.message, ...(details === undefined ? {} : { details }) } }
    const { remediation } = errorCodes[this.code] as ErrorEntry
    return {
      error: {
        type: errorTypeOf(this.code, this.status),
        code: this.code,
        message: this.message,
        requestId,
        ...(param === undefined ? {} : { param }),
        ...(details === undefined ? {} : { details }),
        ...(remediation === null ? {} : { remediation }),
        ...(allowedValues === undefined ? {} : { allowedValues: [...allowedValues] }),
      },
    }
  }
}

/** Names the bad fields of a `validation_error`. A refusal by a rule counts as one field, named by `param`. */
function withFields(options: FailOptions, message: string): FailOptions {
  if (Array.isArray(options.details?.['fields'])) return options
  const fields: FieldError[] = [{ path: options.param ?? 'body', message }]
  return { ...options, details: { ...options.details, fields } }
}

/** A refusal of an older route: `{ "error": "<message>" }`. Thrown only by `failPlain`. */
export class PlainApiError extends Error {
  readonly id: PlainErrorId
  readonly status: number

  constructor(id: PlainErrorId) {
    super(plainErrors[id].message)
    this.name = 'PlainApiError'
    this.id = id
    this.status = plainErrors[id].status
  }
}

/** Ends the request with an error of the catalogue. */
export function fail(code: ErrorCode, options?: FailOptions): never {
  throw new ApiError(code, options)
}

/** Ends the request with a `validation_error` about one field. */
export function failField(param: string, message: string): never {
  return fail('validation_error', { param, message, details: { fields: [{ path: param, message }] } })
}

export function failPlain(id: PlainErrorId): never {
  throw new PlainApiError(id)
}

export function isSharedError(code: string): boolean {
  return Object.hasOwn(sharedErrors, code)
}

/** Clients get these as code, message and details alone. */
export function hasShortEnvelope(code: string): boolean {
  return Object.hasOwn(connectionErrors, code)
}
