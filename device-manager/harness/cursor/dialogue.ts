import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { DialogueOptions, DialogueOutput, HarnessDialogue } from '../adapter.ts'
import { errorEvent } from '../parts/error-event.ts'
import { callEvent, resultEvent, streamAsItIs, wordEvents } from '../parts/event-pieces.ts'
import { promptWithInstructions } from '../parts/instructions.ts'
import { joined } from '../parts/json-lines.ts'
import { turnDialogue, type TurnRun } from '../parts/turn-dialogue.ts'
import { Turn } from '../parts/turn.ts'
import { cursorResultOf, toolNameOf } from './calls.ts'
import { cursorOutcome, type CursorFacts, type OwnCursorFacts } from './outcome.ts'
import * as wire from './wire.ts'
import { CursorWords } from './words.ts'

const maxCalls = 1_000
const maxThinkingChars = 256 * 1024

/**
 * One run of Cursor in print mode: the prompt is written and standard input closed, lines come, and its result is the end,
 * whether or not the process leaves then. It asks nothing and takes no further text.
 */
export function cursorDialogue(spec: RunSpec, options: DialogueOptions = {}): HarnessDialogue {
  const run = new CursorRun(spec, options)
  const dialogue = turnDialogue(run, options, { outcome: (exit) => cursorOutcome(run.facts, exit) })
  return {
    ...dialogue,
    silent: () => ({ events: run.words.release() }),
    end: () => joined([{ events: run.words.flush() }, dialogue.end()]),
  }
}

class CursorRun implements TurnRun {
  readonly facts: CursorFacts
  readonly words: CursorWords
  readonly #turn: Turn<OwnCursorFacts>
  readonly #calls = new Set<string>()
  #thinking = ''

  constructor(spec: RunSpec, options: DialogueOptions) {
    this.#turn = new Turn(spec, options, { tooLate: noInput, own: { result: null, openCalls: 0 } })
    this.facts = this.#turn.facts
    this.words = new CursorWords(this.#turn.redactText, options.redactStream ?? streamAsItIs)
  }

  open(): DialogueOutput {
    return { events: [], write: promptWithInstructions(this.#turn.spec).join('\n\n'), closeInput: true }
  }

  answer(): DialogueOutput {
    return { events: [] }
  }

  input(): DialogueOutput {
    return { events: [noInput] }
  }

  /** null: not a line that is understood. */
  line(value: Record<string, unknown>): DialogueOutput | null {
    // Lines after the result belong to nobody, and those of another session not to this run.
    if (this.facts.result !== null || this.#isElsewhere(value)) return null
    switch (value['type']) {
      case 'system':
        return this.#init(value)
      case 'user':
        return { events: [] }
      case 'thinking':
        return this.#thought(value)
      case 'assistant':
        return this.#words(value)
      case 'tool_call':
        return this.#tool(value)
      case 'result':
        return this.#result(value)
      default:
        return null
    }
  }

  #isElsewhere({ session_id: sessionId }: Record<string, unknown>): boolean {
    return this.facts.sessionId !== null && sessionId != null && sessionId !== this.facts.sessionId
  }

  #init(value: unknown): DialogueOutput | null {
    const parsed = wire.cursorInitLine.safeParse(value)
    if (!parsed.success || this.facts.sessionId !== null) return null
    const { session_id: sessionId, model } = parsed.data
    return { events: [this.#turn.session(sessionId, { model })] }
  }

  #thought(value: unknown): DialogueOutput | null {
    const parsed = wire.thinkingLine.safeParse(value)
    if (!parsed.success) return null
    const stop = this.#modelActs()
    this.#thinking = (this.#thinking + (parsed.data.text ?? '')).slice(-maxThinkingChars)
    if (parsed.data.subtype === 'delta') return { events: [], ...stop }
    const text = this.#thinking
    this.#thinking = ''
    return { events: wordEvents('thinking', { text }, this.#turn.redactText), ...stop }
  }

  #words(value: unknown): DialogueOutput | null {
    const parsed = wire.cursorAssistantLine.safeParse(value)
    if (!parsed.success) return null
    const stop = this.#modelActs()
    this.facts.didWork = true
    const { message, timestamp_ms: at, model_call_id: callId } = parsed.data
    const text = message.content.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('')
    const isPiece = at != null && callId == null
    return { events: isPiece ? this.words.piece(text) : this.words.whole(text), ...stop }
  }

  #tool(value: unknown): DialogueOutput | null {
    const parsed = wire.toolCallLine.safeParse(value)
    const [key, inner] = parsed.success ? (Object.entries(parsed.data.tool_call)[0] ?? ['', null]) : ['', null]
    const body = wire.toolCallBody.safeParse(inner)
    if (!parsed.success || !body.success) return null
    this.facts.didWork = true
    // The id of one call holds the ids of two systems, one a line.
    const toolCallId = parsed.data.call_id.replaceAll('\n', '/')
    const { args, result } = body.data
    if (parsed.data.subtype === 'started') {
      if (this.#calls.has(toolCallId) || this.#calls.size >= maxCalls) return null
      const stop = this.#modelActs()
      this.#calls.add(toolCallId)
      this.facts.openCalls = this.#calls.size
      const call = { name: toolNameOf(key, args), input: args }
      const said = this.words.endSegment()
      return { events: [...said, callEvent({ toolCallId }, call, this.#turn.redactText)], ...stop }
    }
    if (!this.#calls.delete(toolCallId)) return null
    this.facts.openCalls = this.#calls.size
    this.#turn.modelIsAsked()
    return { events: [resultEvent({ toolCallId, ...cursorResultOf(result) }, this.#turn.redactText)] }
  }

  #result(value: unknown): DialogueOutput | null {
    const parsed = wire.cursorResultLine.safeParse(value)
    if (!parsed.success) return null
    const { usage, result, is_error: isError } = parsed.data
    this.facts.result = { ...parsed.data, result: this.#turn.capped(result ?? '') }
    const events: RunEventBody[] = usage ? [{ kind: 'usage', data: usage }] : []
    return { events: [...this.words.flush(), ...events, this.#turn.result(result ?? '', isError)], finished: true }
  }

  /** Past the last turn of the model the program is ended. */
  #modelActs(): { endNow?: true } {
    return this.#turn.modelActs() ? { endNow: true } : {}
  }
}

const noInput = errorEvent(
  'input_refused',
  'Cursor takes no text while it runs without being asked; it was not delivered.',
)
