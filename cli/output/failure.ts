import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import { remediations } from '../../shared/api/remediations.ts'
import { jsonText } from './terminal-text.ts'

// What a failure says: to a program the envelope, to a person a sentence and what to do about it.

export function exitNameOf(error: unknown) {
  return error instanceof CliError || error instanceof ApiFailure ? error.exit : 'bug'
}

/** The server's envelope as it came, or one of the same shape for errors of svc itself. */
export function envelopeOf(error: unknown): unknown {
  if (error instanceof ApiFailure) {
    if (typeof error.body === 'object' && error.body !== null) return error.body
    return { error: { type: 'api_error', code: 'cli.unexpected_answer', message: error.message, status: error.status } }
  }
  if (error instanceof CliError) {
    const { code, message, remediation, details } = error
    return {
      error: {
        type: 'cli_error',
        code,
        message,
        ...(remediation === null ? {} : { remediation }),
        ...(details === null ? {} : { details }),
      },
    }
  }
  return {
    error: { type: 'cli_error', code: 'cli.bug', message: error instanceof Error ? error.message : String(error) },
  }
}

export function sentenceOf(error: unknown, isInRun: boolean): string {
  const envelope = fieldAt(envelopeOf(error), 'error')
  if (typeof envelope === 'string') return `svc: ${envelope}\n`
  const message = textAt(envelope, 'message') ?? (error instanceof Error ? error.message : 'The call failed.')
  const lines = [`svc: ${message}`]
  const found = fieldAt(envelope, 'details', 'fields')
  const fields = Array.isArray(found) ? (found as unknown[]) : null
  for (const field of fields ?? [])
    lines.push(`  ${wordOf(fieldAt(field, 'path'))}: ${wordOf(fieldAt(field, 'message'))}`)
  const place = [textAt(envelope, 'param'), ...placeIn(envelope)].filter((part) => part !== null)
  if (place.length > 0 && fields === null) lines.push(`  at: ${place.join(', ')}`)
  const allowed = fieldAt(envelope, 'allowedValues')
  if (Array.isArray(allowed)) lines.push(`  allowed: ${allowed.map(wordOf).join(', ')}`)
  const remediation = textAt(envelope, 'remediation')
  if (remediation === 'sign_in' && !isInRun) lines.push('Type `svc login` to sign in again.')
  else if (remediation !== null) lines.push(error instanceof CliError ? remediation : adviceOf(remediation))
  const facts = [textAt(envelope, 'code'), textAt(envelope, 'requestId')].filter(
    (fact) => fact !== null && fact !== 'cli.usage',
  )
  if (facts.length > 0) lines.push(`  (${facts.join(', ')})`)
  return `${lines.join('\n')}\n`
}

/** A server of another release may have names that this svc does not know. */
const adviceOf = (name: string) => (Object.hasOwn(remediations, name) ? remediations[name]! : `  fix: ${name}`)

/** The place in a text that was sent, as a refused program has one. */
function placeIn(envelope: unknown): string[] {
  return (['line', 'column'] as const).flatMap((name) => {
    const at = fieldAt(envelope, 'details', name)
    return typeof at === 'number' ? [`${name} ${at}`] : []
  })
}

/** What answers need not be the server: anything may stand where a word is expected. */
const wordOf = (value: unknown): string => (typeof value === 'string' ? value : jsonText(value))

export const traceOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))
