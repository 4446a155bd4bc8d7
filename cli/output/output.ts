import { exitStatus } from '../errors/exit-codes.ts'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import { cutSequence, jsonText, terminalText } from './terminal-text.ts'

/**
 * The only part of svc that prints: results on standard output, everything else on standard error. The text may come
 * from an agent, so only colours may steer the terminal.
 */
export interface Output {
  readonly format: 'json' | 'table'
  /** JSON was asked for, so commands that print text print JSON instead. */
  readonly isJsonWanted: boolean
  /** Columns of the terminal, at most 100. */
  readonly width: number
  /**
   * Prints a result in the format. `columns` make a table of the rows of a list, with the flag that reads its next page
   * below it.
   */
  result(value: unknown, columns?: readonly string[], nextFlag?: string): Promise<void>
  /** Prints one line of JSON, for streams. */
  jsonLine(value: unknown): void
  /** Prints text for a person, with a newline at its end. */
  text(text: string): void
  /** Prints text that a program may take byte by byte: into a pipe it goes unchanged. */
  exact(text: string): void
  /** Prints text as it comes and adds nothing. */
  piece(text: string): void
  /** Prints a remark for a person on standard error. */
  message(text: string): void
  /** Prints the failure and returns the exit status. */
  failure(error: unknown): number
  /** Resolves when the reader has room for more; until then output is kept in memory. */
  drained(): Promise<void>
  /**
   * Resolves when all output is handed over. A pipe takes 64 KiB at once and the rest only while somebody reads: to
   * exit before that would cut the result off.
   */
  written(): Promise<void>
}

export interface OutputOptions {
  stdout: NodeJS.WriteStream
  /** Opened on the first write: most calls write nothing there. */
  stderr(): NodeJS.WriteStream
  /** The value of `--output`. */
  wanted: 'json' | 'table' | null
  isDebugging: boolean
  /** Within a run the reader is an agent, even if its harness gives it a terminal. */
  isInRun: boolean
}

export function createOutput(options: OutputOptions): Output {
  const { stdout } = options
  // A terminal that nobody gave a size has 0 columns: its width is not known.
  const columns = stdout.columns || null
  let stderr: NodeJS.WriteStream | null = null
  const complain = (text: string) => void (stderr ??= options.stderr()).write(terminalText(text))
  const isTerminal = stdout.isTTY && !options.isInRun
  const format = options.wanted ?? (isTerminal ? 'table' : 'json')
  /** The end of a piece that may continue in the next one. */
  let held = ''
  const print = (text: string) => {
    if (held !== '') stdout.write(terminalText(held))
    held = ''
    stdout.write(text)
  }
  const writeJson = (value: unknown) => print(`${jsonText(value, isTerminal ? 2 : 0)}\n`)
  return {
    format,
    isJsonWanted: options.wanted === 'json',
    width: Math.min(100, columns ?? 100),
    async result(value, shown, nextFlag) {
      if (value === undefined) return
      if (format === 'json') {
        writeJson(value)
        return
      }
      const { renderTable } = await import('./table.ts')
      const table = renderTable(value, {
        columns: shown ?? null,
        width: columns,
        nextFlag: nextFlag ?? null,
      })
      print(table ?? `${jsonText(value, 2)}\n`)
    },
    jsonLine: (value) => print(`${jsonText(value)}\n`),
    text: (text) => print(terminalText(withLineEnd(text))),
    exact: (text) => print(stdout.isTTY ? terminalText(withLineEnd(text)) : withLineEnd(text)),
    piece(text) {
      const whole = held + text
      held = cutSequence.exec(whole)?.[0] ?? ''
      const ready = terminalText(whole.slice(0, whole.length - held.length))
      if (ready !== '') stdout.write(ready)
    },
    message: (text) => complain(`${text}\n`),
    failure(error) {
      complain(format === 'json' ? `${jsonText(envelopeOf(error))}\n` : sentenceOf(error, options.isInRun))
      if (options.isDebugging) complain(`${traceOf(error)}\n`)
      return exitStatus(exitNameOf(error))
    },
    async drained() {
      if (stdout.writableNeedDrain) await new Promise<void>((resolve) => stdout.once('drain', resolve))
    },
    async written() {
      if (held !== '') print('')
      for (const stream of [stdout, stderr]) {
        if (stream === null || stream.writableLength === 0) continue
        await new Promise<void>((resolve) => stream.write('', () => resolve()))
      }
    },
  }
}

const withLineEnd = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)

/** A reader that has seen enough (`| head`) is no failure; any other failed write is one. */
export function endWhenNothingIsTaken(stream: NodeJS.WriteStream, fail: (error: Error) => number): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : fail(outputLost(error)))
  })
}

/** The reason why some output was not written, or null. The stream's own event may come after svc has ended. */
export function findOutputLoss(stream: NodeJS.WriteStream): Error | null {
  const error: NodeJS.ErrnoException | null = stream.errored
  return error === null || error.code === 'EPIPE' ? null : outputLost(error)
}

const outputLost = (cause: Error) =>
  new CliError('output_lost', `Not all of the result could be written: ${cause.message}.`, { cause })

function exitNameOf(error: unknown) {
  return error instanceof CliError || error instanceof ApiFailure ? error.exit : 'bug'
}

/** The server's envelope as it came, or one of the same shape for errors of svc itself. */
function envelopeOf(error: unknown): unknown {
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

function sentenceOf(error: unknown, isInRun: boolean): string {
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
  else if (remediation !== null) lines.push(error instanceof CliError ? remediation : `  fix: ${remediation}`)
  const facts = [textAt(envelope, 'code'), textAt(envelope, 'requestId')].filter(
    (fact) => fact !== null && fact !== 'cli.usage',
  )
  if (facts.length > 0) lines.push(`  (${facts.join(', ')})`)
  return `${lines.join('\n')}\n`
}

/** The place in a text that was sent, as a refused program has one. */
function placeIn(envelope: unknown): string[] {
  return (['line', 'column'] as const).flatMap((name) => {
    const at = fieldAt(envelope, 'details', name)
    return typeof at === 'number' ? [`${name} ${at}`] : []
  })
}

/** What answers need not be the server: anything may stand where a word is expected. */
const wordOf = (value: unknown): string => (typeof value === 'string' ? value : jsonText(value))

const traceOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))
