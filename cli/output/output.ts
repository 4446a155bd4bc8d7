import { exitStatus } from '../errors/exit-codes.ts'
import { CliError } from '../errors/cli-error.ts'
import { brokenLines } from './broken-lines.ts'
import { envelopeOf, exitNameOf, sentenceOf, traceOf } from './failure.ts'
import { paintFor, type Paint } from './colours.ts'
import type { Shape } from './shape.ts'
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
  /** Results are for a person at a terminal. */
  readonly isTerminal: boolean
  /** Colours text for a person, as far as colours are wanted. */
  readonly paint: Paint
  /** Prints a result in the format. */
  result(value: unknown, shape?: Shape): Promise<void>
  /**
   * Shows a result in the place of all that the terminal shows, as far as it fits, with the line below it.
   */
  screen(value: unknown, shape: Shape, below: string): Promise<void>
  /** Prints the pages of a list as one, each when it comes. */
  pages(pages: AsyncIterable<unknown>, shape?: Shape): Promise<void>
  /** Prints one line of JSON, for streams. */
  jsonLine(value: unknown): void
  /** Prints text for a person, with a newline at its end. */
  text(text: string): void
  /** Prints text for a person that may be longer than the screen. */
  longText(text: string): Promise<void>
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

export type WantedFormat = 'json' | 'table' | 'tsv'

export interface OutputOptions {
  stdout: NodeJS.WriteStream
  /** Opened on the first write: most calls write nothing there. */
  stderr(): NodeJS.WriteStream
  /** What the flags ask for. */
  wanted: WantedFormat | null
  /** null: as the terminal is. */
  hasColours: boolean | null
  /** The terminal has 256 colours. */
  hasPalette: boolean
  /** The program in which what is longer than the screen is shown; null: none. */
  pager: string | null
  isDebugging: boolean
  /** Within a run the reader is an agent, even if its harness gives it a terminal. */
  isInRun: boolean
  now(): number
}

const toFirstRow = '\u001b[H'
const toEndOfLine = '\u001b[K'
const toEndOfScreen = '\u001b[J'

export function createOutput(options: OutputOptions): Output {
  const { stdout, wanted } = options
  // A terminal that nobody gave a size has 0 columns: its width is not known.
  const columns = stdout.columns || null
  let stderr: NodeJS.WriteStream | null = null
  const complain = (text: string) => void (stderr ??= options.stderr()).write(terminalText(text))
  /** Words for a person, who reads them on a terminal line by line. */
  const tell = (text: string) => {
    stderr ??= options.stderr()
    complain(stderr.isTTY && stderr.columns > 0 ? brokenLines(text, stderr.columns) : text)
  }
  const isTerminal = stdout.isTTY && !options.isInRun
  const hasColours = wanted !== 'tsv' && (options.hasColours ?? isTerminal)
  const colours = hasColours ? (options.hasPalette ? 'palette' : 'basic') : 'none'
  const format = wanted === 'json' || (wanted === null && !isTerminal) ? 'json' : 'table'
  /** The end of a piece that may continue in the next one. */
  let held = ''
  const print = (text: string) => {
    if (held !== '') stdout.write(terminalText(held))
    held = ''
    stdout.write(text)
  }
  const writeJson = (value: unknown) => print(`${jsonText(value, isTerminal ? 2 : 0)}\n`)
  const printer = async (shape: Shape = {}) =>
    (await import('./printer.ts')).createPrinter(shape, {
      width: columns,
      isPlain: !isTerminal || wanted === 'tsv',
      colours,
      now: options.now(),
    })
  const show = ({ text, remark }: { text: string; remark: string | null }) => {
    if (text !== '') print(text)
    if (remark !== null) complain(`${remark}\n`)
  }
  /** Only a person at a terminal can page. */
  const printLong = async (text: string) => {
    const isLong = isTerminal && stdout.rows > 0 && text.split('\n').length > stdout.rows
    if (isLong && options.pager !== null && (await (await import('./pager.ts')).showInPager(text, options.pager)))
      return
    if (text !== '') print(text)
  }
  const drained = async () => {
    if (stdout.writableNeedDrain) await new Promise<void>((resolve) => stdout.once('drain', resolve))
  }
  return {
    format,
    isJsonWanted: wanted === 'json',
    width: Math.min(100, columns ?? 100),
    isTerminal,
    paint: paintFor(colours),
    async result(value, shape) {
      if (value === undefined) return
      if (format === 'json') writeJson(value)
      else {
        const shown = await printer(shape)
        await shown.prepare(value)
        const { text, remark } = shown.whole(value)
        await printLong(text)
        show({ text: '', remark })
      }
    },
    async screen(value, shape, below) {
      const shownBy = await printer(shape)
      await shownBy.prepare(value)
      const lines = shownBy.whole(value).text.trimEnd().split('\n')
      // A line that is too long wraps, which the printer sees to; the last row stays free, so that nothing scrolls.
      const room = Math.max(1, (stdout.rows || 24) - 3)
      const shown =
        lines.length <= room ? lines : [...lines.slice(0, room - 1), `... and ${lines.length - room + 1} lines more`]
      const rows = [...shown, '', terminalText(below)].map((line) => `${line}${toEndOfLine}\n`)
      print(`${toFirstRow}${rows.join('')}${toEndOfScreen}`)
      await drained()
    },
    async pages(pages, shape) {
      const shown = format === 'json' ? (await import('./json-pages.ts')).createJsonPages(shape) : await printer(shape)
      for await (const page of pages) {
        await shown.prepare(page)
        show(shown.page(page))
        await drained()
      }
      show(shown.end())
    },
    jsonLine: (value) => print(`${jsonText(value)}\n`),
    text: (text) => print(terminalText(withLineEnd(text))),
    longText: (text) => printLong(terminalText(withLineEnd(text))),
    exact: (text) => print(stdout.isTTY ? terminalText(withLineEnd(text)) : withLineEnd(text)),
    piece(text) {
      const whole = held + text
      held = cutSequence.exec(whole)?.[0] ?? ''
      const ready = terminalText(whole.slice(0, whole.length - held.length))
      if (ready !== '') stdout.write(ready)
    },
    message: (text) => tell(`${text}\n`),
    failure(error) {
      if (format === 'json') complain(`${jsonText(envelopeOf(error))}\n`)
      else tell(sentenceOf(error, options.isInRun))
      if (options.isDebugging) complain(`${traceOf(error)}\n`)
      return exitStatus(exitNameOf(error))
    },
    drained,
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
