import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { DialogueOptions, DialogueOutput, HarnessDialogue, RedactText } from '../adapter.ts'
import { errorEvent } from '../parts/error-event.ts'
import { asItIs, callEvent, cappedText, resultEvent, wordEvents } from '../parts/event-pieces.ts'
import { promptWithInstructions } from '../parts/instructions.ts'
import { lineFrame } from '../parts/line-frame.ts'
import { resultOf, toolNameOf } from './calls.ts'
import { cursorOutcome, type OutcomeFacts } from './outcome.ts'
import * as wire from './wire.ts'

const maxCalls = 1_000
const maxThinkingChars = 256 * 1024

/**
 * One run of Cursor in print mode: the prompt is written and standard input closed, lines come, and its result is the end,
 * whether or not the process leaves then. It asks nothing and takes no further text.
 */
export function cursorDialogue(spec: RunSpec, options: DialogueOptions = {}): HarnessDialogue {
  const redactText = options.redactText ?? asItIs
  const run = new CursorRun(spec, redactText)
  return {
    open: () => ({ events: [], write: promptWithInstructions(spec).join('\n\n'), closeInput: true }),
    ...lineFrame(run, options),
    answer: () => ({ events: [] }),
    input: () => ({ events: [noInput] }),
    outcome: (exit) => cursorOutcome(run.facts, exit),
  }
}

class CursorRun {
  readonly facts: OutcomeFacts
  readonly #maxTurns: number | null
  readonly #redactText: RedactText
  readonly #calls = new Set<string>()
  #thinking = ''
  #turns = 0
  #isModelsTurn = false

  constructor({ resumeSessionId, maxTurns }: RunSpec, redactText: RedactText) {
    this.#maxTurns = maxTurns
    this.#redactText = redactText
    this.facts = {
      resumeSessionId,
      sessionId: null,
      result: null,
      openCalls: 0,
      maxTurnsReached: null,
      didWork: false,
      stderrTail: '',
    }
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
    const parsed = wire.initLine.safeParse(value)
    if (!parsed.success || this.facts.sessionId !== null) return null
    const { session_id: sessionId, model } = parsed.data
    this.facts.sessionId = sessionId
    const resumed = this.facts.resumeSessionId === null ? {} : { resumed: this.facts.resumeSessionId === sessionId }
    return { events: [{ kind: 'session', data: { sessionId, ...(model != null && { model }), ...resumed } }] }
  }

  #thought(value: unknown): DialogueOutput | null {
    const parsed = wire.thinkingLine.safeParse(value)
    if (!parsed.success) return null
    const stop = this.#modelSpeaks()
    this.#thinking = (this.#thinking + (parsed.data.text ?? '')).slice(-maxThinkingChars)
    if (parsed.data.subtype === 'delta') return { events: [], ...stop }
    const text = this.#thinking
    this.#thinking = ''
    return { events: wordEvents('thinking', { text }, this.#redactText), ...stop }
  }

  #words(value: unknown): DialogueOutput | null {
    const parsed = wire.assistantLine.safeParse(value)
    if (!parsed.success) return null
    const stop = this.#modelSpeaks()
    this.facts.didWork = true
    const text = parsed.data.message.content.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('')
    return { events: wordEvents('text', { text }, this.#redactText), ...stop }
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
      const stop = this.#modelSpeaks()
      this.#calls.add(toolCallId)
      this.facts.openCalls = this.#calls.size
      const call = { name: toolNameOf(key, args), input: args }
      return { events: [callEvent({ toolCallId }, call, this.#redactText)], ...stop }
    }
    if (!this.#calls.delete(toolCallId)) return null
    this.facts.openCalls = this.#calls.size
    this.#isModelsTurn = false
    return { events: [resultEvent({ toolCallId, ...resultOf(result) }, this.#redactText)] }
  }

  #result(value: unknown): DialogueOutput | null {
    const parsed = wire.resultLine.safeParse(value)
    if (!parsed.success) return null
    const { usage, result, is_error: isError } = parsed.data
    const { text, ...cut } = cappedText(result ?? '', this.#redactText)
    this.facts.result = { ...parsed.data, result: text }
    const events: RunEventBody[] = usage ? [{ kind: 'usage', data: usage }] : []
    return { events: [...events, { kind: 'result', data: { text, isError, ...cut } }], finished: true }
  }

  /** Cursor counts no turns: what the model says or calls after tools have ended is its next one. Past the last it is ended. */
  #modelSpeaks(): { endNow?: true } {
    if (this.#isModelsTurn) return {}
    this.#isModelsTurn = true
    this.#turns++
    if (this.#maxTurns === null || this.#turns <= this.#maxTurns) return {}
    this.facts.maxTurnsReached = this.#maxTurns
    return { endNow: true }
  }
}

const noInput = errorEvent(
  'input_refused',
  'Cursor takes no text while it runs without being asked; it was not delivered.',
)
