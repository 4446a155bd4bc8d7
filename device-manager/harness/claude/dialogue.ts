import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { CallDecision, DialogueOptions, DialogueOutput, HarnessDialogue } from '../adapter.ts'
import { forgetOldest } from '../parts/asked-calls.ts'
import { errorEvent, failedRequestEvent } from '../parts/error-event.ts'
import { rawEvents, streamAsItIs } from '../parts/event-pieces.ts'
import { joined } from '../parts/json-lines.ts'
import { PartialWords } from '../parts/partial-words.ts'
import { turnDialogue, type TurnRun } from '../parts/turn-dialogue.ts'
import { Turn } from '../parts/turn.ts'
import { callQuestions, initializeRequest, initializeRequestId, userMessage } from './call-questions.ts'
import { assistantEvents, userEvents } from './messages.ts'
import { claudeOutcome, type ClaudeFacts, type OwnClaudeFacts } from './outcome.ts'
import { Rest } from './rest.ts'
import { limitsUsedIn } from './used-limits.ts'
import { usageMeter } from './usage.ts'
import {
  claudeAssistantLine,
  controlResponse,
  claudeInitLine,
  rateLimitLine,
  claudeResultLine,
  retryLine,
  sessionsOf,
  streamLine,
  userLine,
} from './wire.ts'

/**
 * One run of claude. What it goes through:
 *
 *     opening    initialize is sent, with the hook; nothing else, so that no tool can run before the hook is there
 *     working    the prompt is sent; assistant and user lines come, tool calls are asked and answered
 *     finished   the result came and no turn waits: standard input is closed, by which claude exits
 *
 * A person's text in `opening` is sent after the prompt; in `finished` it is too late, and an event says so.
 *
 * A text that begins with `/` always waits for a turn of its own, and a result counts no such turns; any text may arrive just after
 * the result was written. So where texts were sent that began no turn, and claude tells its state, the run is finished when claude
 * is idle and has read all that was sent to it, as the answer to a request that follows the last text shows (`Rest`).
 *
 * Every line names its session; those of subagents name the run's. claude begins another session only with a turn, as by the
 * text `/clear`, and says so first. What any other session says, such as that of a claude which a tool started and which writes to
 * the same output, is kept raw, and its tool calls are denied.
 */
export function claudeDialogue(spec: RunSpec, options: DialogueOptions = {}): HarnessDialogue {
  const run = new ClaudeRun(spec, options)
  const dialogue = turnDialogue(run, options, { outcome: (exit) => claudeOutcome(run.facts, exit) })
  return {
    ...dialogue,
    silent: () => ({ events: run.words.release() }),
    end: () => joined([{ events: run.words.flush() }, dialogue.end()]),
  }
}

class ClaudeRun implements TurnRun {
  readonly facts: ClaudeFacts
  readonly words: PartialWords
  readonly #turn: Turn<OwnClaudeFacts>
  readonly #questions = callQuestions()
  /** The names of the calls that have no result yet. */
  readonly #calls = new Map<string, string>()
  readonly #usage: ReturnType<typeof usageMeter>
  /** From the `init` of a turn to its result. */
  #isInTurn = false
  /** Turns that began, and texts that were sent: one for each turn, or more where they came in its middle. */
  #turns = 0
  #texts = 0
  readonly #rest = new Rest()
  #lastResult: string | null = null
  /** The message that the model makes. */
  #message: string | null = null
  #model: string | null = null
  #version: string | null = null

  constructor(spec: RunSpec, options: DialogueOptions) {
    this.#usage = usageMeter({ resumed: spec.resumeSessionId !== null, model: () => this.#model })
    const own = { result: null, lastError: null, limitResetsAt: null, limitsUsed: {} }
    this.#turn = new Turn(spec, options, { tooLate, own })
    this.facts = this.#turn.facts
    this.words = new PartialWords(this.#turn.redactText, options.redactStream ?? streamAsItIs)
  }

  open(): DialogueOutput {
    return { events: [], write: initializeRequest }
  }

  answer(askId: string, decision: CallDecision): DialogueOutput {
    const write = this.#questions.answer(askId, decision)
    return write === null ? { events: [] } : { events: [], write }
  }

  input(text: string): DialogueOutput {
    return this.#turn.input(text, this.#turn.phase === 'working' ? () => this.#send([text]) : null)
  }

  #send(texts: readonly string[]): string {
    this.#texts += texts.length
    return texts.map(userMessage).join('') + this.#rest.sent()
  }

  /** null: not a line that is understood. */
  line(value: Record<string, unknown>): DialogueOutput | null {
    if (this.#isElsewhere(value)) return this.#elsewhere(value)
    switch (value['type']) {
      case 'system':
        return this.#system(value)
      case 'assistant':
        return this.#assistant(value)
      case 'user':
        return this.#user(value)
      case 'result':
        return this.#result(value)
      case 'control_request': {
        if (this.#turn.isFinished) return this.#refused(value, 'The run has ended, so the call is denied.')
        const step = this.#questions.request(value)
        return step && { events: [], ...(step.write && { write: step.write }), ...(step.ask && { asks: [step.ask] }) }
      }
      case 'control_cancel_request':
        return this.#questions.cancel(value) ? { events: [] } : null
      case 'control_response':
        return this.#controlResponse(value)
      case 'rate_limit_event':
        return this.#rateLimit(value)
      case 'stream_event':
        return this.#piece(value)
      // Signs of life.
      case 'tool_progress':
      case 'keep_alive':
        return { events: [] }
      default:
        return null
    }
  }

  /** Before the first `init` nobody can say which session is the run's. */
  #isElsewhere(value: Record<string, unknown>): boolean {
    const own = this.facts.sessionId
    if (own === null || sessionsOf(value).every((sessionId) => sessionId === own)) return false
    const isInit = value['type'] === 'system' && value['subtype'] === 'init'
    return !isInit || this.#isInTurn || this.#turns >= this.#texts
  }

  #elsewhere(value: Record<string, unknown>): DialogueOutput | null {
    const why = 'The call is of another session, so it is denied.'
    return value['type'] === 'control_request' ? this.#refused(value, why) : null
  }

  /** Nobody is asked; the request is shown. */
  #refused(value: Record<string, unknown>, why: string): DialogueOutput | null {
    const write = this.#questions.refuse(value, why)
    if (write === null) return null
    return { events: rawEvents(Buffer.from(`${JSON.stringify(value)}\n`), 'stdout', this.#turn.redactText), write }
  }

  /** Shown as it is: there is no event for it. */
  #rateLimit(value: Record<string, unknown>): null {
    const line = rateLimitLine.safeParse(value)
    if (line.success) {
      const { status, resetsAt } = line.data.rate_limit_info
      this.facts.limitsUsed = { ...this.facts.limitsUsed, ...limitsUsedIn(line.data.rate_limit_info) }
      this.facts.limitResetsAt = status === 'rejected' ? (resetsAt ?? null) : null
    }
    return null
  }

  #system(value: Record<string, unknown>): DialogueOutput | null {
    switch (value['subtype']) {
      case 'init':
        return this.#init(value)
      case 'api_retry': {
        const retry = retryLine.safeParse(value)
        if (!retry.success) return null
        const { attempt, max_retries: most, retry_delay_ms: delayMs, error_status: httpStatus } = retry.data
        const message = `A request to the model failed; attempt ${attempt} of ${most} follows in ${Math.round(delayMs)} ms.`
        return { events: [failedRequestEvent({ class: retry.data.error, message, httpStatus, willRetry: true })] }
      }
      case 'session_state_changed': {
        const write = this.#rest.state(value['state'])
        return { events: [], ...(write !== '' && { write }) }
      }
      // These are for a screen only.
      case 'thinking_tokens':
      case 'status':
      case 'ui_invalidate':
        return { events: [] }
      default:
        return null
    }
  }

  /** It comes again with every turn of one process; only a session that is new is told. */
  #init(value: Record<string, unknown>): DialogueOutput | null {
    const init = claudeInitLine.safeParse(value)
    if (!init.success) return null
    const { session_id: sessionId, model, claude_code_version: version } = init.data
    this.#version = version ?? this.#version
    this.#model = model ?? this.#model
    this.#isInTurn = true
    this.#turns++
    if (sessionId === this.facts.sessionId) return { events: [] }
    return { events: [this.#turn.session(sessionId, { model })] }
  }

  /** What the model says now. All of it comes once more, in lines that are whole. */
  #piece(value: Record<string, unknown>): DialogueOutput {
    const line = streamLine.safeParse(value)
    if (!line.success || line.data.parent_tool_use_id != null) return { events: [] }
    const { event } = line.data
    if (event.type === 'message_start') {
      this.#message = event.message.id
      return { events: [] }
    }
    if (this.#message === null) return { events: [] }
    const { delta, index: part } = event
    const kind = delta.type === 'text_delta' ? 'text' : 'thinking'
    const text = delta.type === 'text_delta' ? delta.text : delta.thinking
    if (text !== '') this.facts.didWork = true
    return { events: this.words.piece(kind, { id: this.#message, part, text }) }
  }

  #assistant(value: Record<string, unknown>): DialogueOutput | null {
    const line = claudeAssistantLine.safeParse(value)
    if (!line.success) return null
    const { error, api_error_status: httpStatus, message } = line.data
    // Words of a request that failed stay what they were, and are none of the sentence about it.
    const before = typeof error === 'string' ? this.words.flush() : []
    const events = assistantEvents(line.data, { redactText: this.#turn.redactText, words: this.words })
    if (typeof error === 'string') {
      const said = events.flatMap((event) => (event.kind === 'text' ? (event.data.text ?? '') : [])).join('')
      this.facts.lastError = { class: error, httpStatus: httpStatus ?? null, message: said }
      const message = this.#turn.capped(said)
      return { events: [...before, failedRequestEvent({ class: error, message, httpStatus, willRetry: false })] }
    }
    if (events.length > 0) this.facts.didWork = true
    for (const event of events) if (event.kind === 'tool_call') this.#noteCall(event.data)
    const isSubagents = line.data.parent_tool_use_id != null
    const usage = this.#usage.message({ id: message.id, usage: message.usage, isSubagents })
    return { events: usage === null ? events : [...events, { kind: 'usage', data: usage }] }
  }

  #user(value: Record<string, unknown>): DialogueOutput | null {
    const line = userLine.safeParse(value)
    if (!line.success) return null
    const events = userEvents(line.data, this.#turn.redactText)
    const results = events.flatMap((event) => (event.kind === 'tool_result' ? [event.data] : []))
    const isStopped = results.map((result) => this.#settle(result)).includes(true)
    return { events, ...(isStopped && { endNow: true }) }
  }

  /** True: the call was made although the lists had no say, so nothing more may be. One that failed may have been refused before. */
  #settle({ toolCallId, isError }: { toolCallId: string; isError: boolean }): boolean {
    const decided = this.#questions.settled(toolCallId)
    const name = this.#calls.get(toolCallId)
    this.#calls.delete(toolCallId)
    if (isError || name === undefined || decided === undefined || decided === 'allow') return false
    return this.#turn.sawUnasked({ name, wasAsked: decided !== null })
  }

  #noteCall({ toolCallId, name }: { toolCallId: string; name: string }): void {
    this.#calls.set(toolCallId, name)
    forgetOldest(this.#calls)
  }

  #result(value: Record<string, unknown>): DialogueOutput | null {
    const line = claudeResultLine.safeParse(value)
    if (!line.success) return null
    const { uuid } = line.data
    // One that comes twice would be counted twice.
    if (uuid != null && uuid === this.#lastResult) return null
    this.#lastResult = uuid ?? null
    this.#isInTurn = false
    // The outcome's message is cut from these.
    const result = {
      ...line.data,
      result: line.data.result && this.#turn.redactText(line.data.result),
      errors: line.data.errors?.map(this.#turn.redactText),
    }
    this.facts.result = result
    const events: RunEventBody[] = [
      { kind: 'usage', data: this.#usage.result(result, this.#version) },
      this.#turn.result(result.result ?? result.errors?.join('\n') ?? '', result.is_error),
    ]
    // A message that came too late for this turn starts another, which has its own result.
    if (result.queued_turn_count > 0) return { events }
    if (this.#texts > this.#turns && this.#rest.isTold) {
      const write = this.#rest.await()
      return { events, ...(write !== '' && { write }) }
    }
    return this.#turn.finish(events)
  }

  #controlResponse(value: Record<string, unknown>): DialogueOutput | null {
    const line = controlResponse.safeParse(value)
    if (!line.success) return null
    const { subtype, request_id: requestId, error, response } = line.data.response
    if (this.#turn.phase === 'working' && this.#rest.isBy(requestId)) return this.#turn.finish()
    if (requestId !== initializeRequestId || this.#turn.phase !== 'opening') return { events: [] }
    if (subtype === 'success' && response?.hooks_applied !== false) {
      this.#turn.phase = 'working'
      return { events: [], write: this.#send([this.#turn.spec.prompt, ...this.#turn.takeEarly()]) }
    }
    const why = this.#turn.capped(error ?? subtype)
    return this.#turn.refuse(`claude did not take the permission gate (${why}); update claude.`, 'gate_refused')
  }
}

const tooLate = errorEvent('input_too_late', 'The text came after claude had given its result and was not delivered.')
