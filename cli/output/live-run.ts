import { StringDecoder } from 'node:string_decoder'
import { fieldAt, textAt } from '../replies/fields.ts'
import type { Paint, Tone } from './colours.ts'
import { shortDuration } from './times.ts'
import { oneLine, plainText } from './terminal-text.ts'
import { cut, wrapLines } from './width.ts'
import { WordWrap } from './word-wrap.ts'

export interface LiveRunOptions {
  /** Columns for lines. */
  width: number
  /** What is longer than a line is broken between words, but for what a command prints: its spaces may mean something. */
  breaksWords: boolean
  paint: Paint
  /** Takes text as it is to be shown next. */
  write: (text: string) => void
}

/** A tool's output beyond this is folded. */
const shownLines = 20
/** Calls whose result has not come. */
const mostCalls = 1_000
/** Of what the agent said last, for comparison with its answer. */
const keptChars = 256 * 1024

interface ShownCall {
  title: string
  at: number
}

/**
 * Shows a run as its events come, as the session of the agent itself reads: its words as it says them, a line for each tool call with its
 * time and how it ended, what a tool printed, questions, errors.
 */
export class LiveRun {
  readonly #options: LiveRunOptions
  readonly #calls = new Map<string, ShownCall>()
  #isAtStart = true
  /** The call whose line is not ended. */
  #openCall: string | null = null
  /** What is being said: words of one kind follow each other without a line between them. */
  #speech: { kind: string; tone: Tone | null; decoder: StringDecoder; wrap: WordWrap | null } | null = null
  #said = ''
  /** Its result is what it printed, in other bytes: without carriage returns and colours. */
  #isCommand = false
  #block: 'speech' | 'call' | null = null

  constructor(options: LiveRunOptions) {
    this.#options = options
  }

  /** Shows a line of svc's own. */
  note(text: string, tone: Tone | null = 'dim'): void {
    // Commands are dim, and stay whole.
    this.#line(tone === 'dim' ? text : this.#broken(text), tone)
    this.#block ??= 'call'
  }

  event(event: unknown): void {
    const kind = textAt(event, 'kind')
    switch (kind) {
      case 'text':
      case 'thinking':
        return this.#say(kind, event)
      case 'started':
        this.#isCommand = textAt(event, 'data', 'harness') === 'command'
        return
      case 'tool_call':
        return this.#call(event)
      case 'tool_result':
        return this.#result(event)
      case 'result':
        return this.#answer(textAt(event, 'data', 'text') ?? '')
      case 'raw':
        return this.#raw(event)
      case null:
        return
      default: {
        const shown = remarkOf(kind, event)
        if (shown !== null) this.#line(this.#broken(shown[0]), shown[1])
      }
    }
  }

  /** Ends a line that is open. */
  end(): void {
    this.#newLine()
  }

  #say(kind: 'text' | 'thinking', event: unknown): void {
    const isSubagents = textAt(event, 'data', 'parentToolCallId') !== null
    const name = `${kind} ${isSubagents}`
    if (this.#speech?.kind !== name) {
      this.#newLine()
      this.#space('speech')
      this.#speech = {
        kind: name,
        tone: kind === 'thinking' || isSubagents ? 'dim' : null,
        decoder: new StringDecoder('utf8'),
        wrap: this.#options.breaksWords && !this.#isCommand ? new WordWrap(this.#options.width) : null,
      }
      if (kind === 'text' && !isSubagents) this.#said = ''
    }
    const { decoder, tone, wrap } = this.#speech
    const base64 = textAt(event, 'data', 'base64')
    const text = base64 === null ? (textAt(event, 'data', 'text') ?? '') : decoder.write(Buffer.from(base64, 'base64'))
    if (text === '') return
    if (kind === 'text' && !isSubagents) this.#said = (this.#said + text).slice(-keptChars)
    const ready = wrap === null ? text : wrap.push(text)
    if (ready !== '') this.#options.write(this.#options.paint(ready, tone))
    this.#isAtStart = text.endsWith('\n')
  }

  /** Begins the line of a call; its result ends the line, if nothing else comes before it. */
  #call(event: unknown): void {
    this.#newLine()
    this.#space('call')
    const id = textAt(event, 'data', 'toolCallId') ?? ''
    const call = { title: callTitle(event), at: atOf(event) }
    if (this.#calls.size >= mostCalls) this.#calls.delete(this.#calls.keys().next().value!)
    this.#calls.set(id, call)
    this.#options.write(this.#callText('●', call.title, null))
    this.#isAtStart = false
    this.#openCall = id
  }

  #result(event: unknown): void {
    const id = textAt(event, 'data', 'toolCallId') ?? ''
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    const isError = fieldAt(event, 'data', 'isError') === true
    const took = call === undefined ? '' : ` ${shortDuration(atOf(event) - call.at)}`
    const how = `${isError ? ' failed' : ''}${took}`
    const { paint, write } = this.#options
    if (this.#openCall === id && call !== undefined) {
      write(`${paint(how, isError ? 'bad' : 'dim')}\n`)
      this.#openCall = null
      this.#isAtStart = true
    } else {
      this.#newLine()
      write(
        `${this.#callText('└', call?.title ?? 'result', isError ? 'bad' : 'dim')}${paint(how, isError ? 'bad' : 'dim')}\n`,
      )
    }
    this.#output(textAt(event, 'data', 'output') ?? '')
  }

  #callText(mark: string, title: string, tone: Tone | null): string {
    const { paint, width } = this.#options
    // Room for how it ended and the time.
    const [name, ...rest] = cut(title, width - 18).split(' ')
    return tone === null
      ? `${paint(mark, 'busy')} ${paint(name ?? '', 'bold')} ${rest.join(' ')}`
      : paint(`${mark} ${[name, ...rest].join(' ')}`, tone)
  }

  #output(output: string): void {
    const lines = plainText(output).trimEnd().split('\n')
    if (lines.length === 1 && lines[0] === '') return
    const { width } = this.#options
    for (const line of lines.slice(0, shownLines)) this.#line(`  ${cut(line.replaceAll('\t', '  '), width - 2)}`, 'dim')
    const more = lines.length - shownLines
    if (more > 0) this.#line(`  … ${more} more ${more === 1 ? 'line' : 'lines'}`, 'dim')
  }

  /** Most harnesses say the answer in words before. */
  #answer(text: string): void {
    const isSaid = this.#isCommand ? this.#said !== '' : this.#said.trimEnd().endsWith(text.trim())
    if (text.trim() === '' || isSaid) return this.#newLine()
    this.#line(this.#isCommand ? text : this.#broken(text), null)
  }

  /** What no parser understood is of use to few. */
  #raw(event: unknown): void {
    const text = plainText(textAt(event, 'data', 'text') ?? '').trim()
    if (text !== '' && !text.startsWith('{')) this.#line(cut(text.split('\n')[0]!, this.#options.width), 'dim')
  }

  #line(text: string, tone: Tone | null): void {
    this.#newLine()
    const { write, paint } = this.#options
    write(`${paint(text, tone)}\n`)
  }

  /** Leaves a line free between what is said and what is done. */
  #space(next: 'speech' | 'call'): void {
    if (this.#block !== null && (this.#block !== next || next === 'speech')) this.#options.write('\n')
    this.#block = next
  }

  #broken(text: string): string {
    const { breaksWords, width } = this.#options
    return breaksWords ? wrapLines(text, width) : text
  }

  #newLine(): void {
    const held = this.#speech?.wrap?.end() ?? ''
    if (held !== '') this.#options.write(this.#options.paint(held, this.#speech?.tone ?? null))
    if (!this.#isAtStart) this.#options.write('\n')
    this.#isAtStart = true
    this.#openCall = null
    this.#speech = null
  }
}

const atOf = (event: unknown): number => Date.parse(textAt(event, 'createdAt') ?? '') || 0

/** The fields of a tool's input that say most, in this order. */
const telling = ['command', 'file_path', 'path', 'pattern', 'query', 'url', 'description', 'prompt', 'skill']

/** Names the tool and what it is to do, in one line. */
export function callTitle(event: unknown): string {
  const input = fieldAt(event, 'data', 'input')
  const name = textAt(event, 'data', 'name') ?? 'tool'
  const most = telling.map((field) => textAt(input, field)).find((text) => text !== null && text.trim() !== '')
  const what = most ?? (input === undefined || input === null ? '' : JSON.stringify(input))
  return oneLine(`${name} ${what === '{}' ? '' : what}`)
}

/** Events that are a line each; null: they tell a reader nothing. */
function remarkOf(kind: string, event: unknown): [text: string, tone: Tone | null] | null {
  const data = (...path: string[]) => textAt(event, 'data', ...path)
  switch (kind) {
    case 'permission': {
      if (data('decision') === 'allow') return null
      const summary = data('ask', 'safeSummary')
      if (summary !== null) return [`? A person is asked to allow: ${oneLine(summary)}`, 'waits']
      return [
        `✗ ${oneLine(data('name') ?? 'The call')} is not allowed${data('rule') === null ? '' : ` (${data('rule')})`}`,
        'bad',
      ]
    }
    case 'input':
      return [`> ${data('text') ?? ''}`, 'bold']
    case 'error': {
      const isTried = fieldAt(event, 'data', 'willRetry') === true
      return [`! ${oneLine(data('message') ?? data('class') ?? 'error')}`, isTried ? 'waits' : 'bad']
    }
    case 'gap': {
      const bytes = fieldAt(event, 'data', 'bytes')
      const much =
        fieldAt(event, 'data', 'unknown') === true ? 'Output, nobody knows how much,' : `${String(bytes)} bytes`
      return [`! ${much} were not kept: ${data('reason') ?? ''}`, 'waits']
    }
    default:
      return null
  }
}
