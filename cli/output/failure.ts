import { ApiFailure, CliError, type RefusedLine } from '../errors/cli-error.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import { version } from '../../shared/lib/version.ts'
import { remediations } from '../../shared/api/remediations.ts'
import { jsonText } from './terminal-text.ts'

// What a failure says: to a program the envelope, to a person a sentence and what to do about it.

export function exitNameOf(error: unknown) {
  return error instanceof CliError || error instanceof ApiFailure ? error.exit : 'bug'
}

/** The server's envelope as it came, or one of the same shape for errors of svc itself. */
export function envelopeOf(error: unknown): unknown {
  if (error instanceof ApiFailure) {
    if (typeof error.body === 'object' && error.body !== null) return withLine(error.body, error.line)
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

/** Programs that call svc type flags, too: what the refusal means for these stands beside what the server said. */
function withLine(body: object, line: RefusedLine | null): object {
  const envelope = fieldAt(body, 'error')
  if (line === null || typeof envelope !== 'object' || envelope === null) return body
  return { ...body, error: { ...envelope, arguments: line.values } }
}

export function sentenceOf(error: unknown, isInRun: boolean): string {
  const envelope = fieldAt(envelopeOf(error), 'error')
  if (typeof envelope === 'string') return `svc: ${envelope}\n`
  const message = textAt(envelope, 'message') ?? (error instanceof Error ? error.message : 'The call failed.')
  const line = error instanceof ApiFailure ? error.line : null
  const lines = line?.isUsage === true ? linesOf(line) : [`svc: ${message}`]
  const found = fieldAt(envelope, 'details', 'fields')
  const fields = Array.isArray(found) ? (found as unknown[]) : null
  for (const field of line?.isUsage === true ? [] : (fields ?? []))
    lines.push(`  ${wordOf(fieldAt(field, 'path'))}: ${wordOf(fieldAt(field, 'message'))}`)
  const param = line?.values[0]?.spelling ?? textAt(envelope, 'param')
  const place = [param, ...placeIn(envelope)].filter((part) => part !== null)
  if (line?.isUsage !== true && place.length > 0 && fields === null) lines.push(`  at: ${place.join(', ')}`)
  const allowed = fieldAt(envelope, 'allowedValues')
  if (Array.isArray(allowed) && line?.isUsage !== true) lines.push(`  allowed: ${allowed.map(wordOf).join(', ')}`)
  const remediation = textAt(envelope, 'remediation')
  const code = textAt(envelope, 'code')
  if (remediation === 'sign_in' && !isInRun) lines.push('Type `svc login` to sign in again.')
  else if (code === 'route_not_found') lines.push(olderServer)
  else if (remediation !== null) lines.push(error instanceof CliError ? remediation : adviceOf(remediation))
  const facts = [code, textAt(envelope, 'requestId')].filter((fact) => fact !== null && fact !== 'cli.usage')
  if (facts.length > 0) lines.push(`  (${facts.join(', ')})`)
  return `${lines.join('\n')}\n`
}

const olderServer = `The server may be of an older release than this svc (${version}): upgrade svc on the server's machine. See \`svc doctor\`.`

const linesOf = ({ values }: RefusedLine): string[] =>
  values.map(({ message }, at) => `${at === 0 ? 'svc: ' : '  '}${message}`)

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
