import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { DialogueOutput, RedactStream, RedactText } from '../adapter.ts'
import { forgetOldest } from '../parts/asked-calls.ts'
import { failedRequestEvent } from '../parts/error-event.ts'
import { callEvent, cappedText, resultEvent } from '../parts/event-pieces.ts'
import { PartialWords } from '../parts/partial-words.ts'
import { noTool, shownCall, type CallPlace } from './calls.ts'
import type { WaitingCalls, OpencodeShownCall } from './waiting-calls.ts'
import type { Halt, OpencodeFacts } from './outcome.ts'
import type { Sessions } from './sessions.ts'
import { OpencodeUsage } from './usage.ts'
import {
  partDelta,
  partUpdated,
  sessionError,
  sessionStatus,
  stepFinish,
  toolPart,
  wordsPart,
  type HarnessError,
  type ToolPart,
} from './wire.ts'

export interface SessionEventsParts {
  /** Written to as the session goes on. */
  facts: OpencodeFacts
  waiting: WaitingCalls
  sessions: Sessions
  place(): CallPlace
  checksCalls: boolean
  redactText: RedactText
  redactStream: () => RedactStream
}
export type SessionOutput = DialogueOutput & { halt?: Halt }

/** Parts that were told already are remembered, since each comes several times. */
const maxTold = 20_000
/** Parts of words that have begun and are not whole; the model makes them one after another. */
const maxMaking = 16
/** The question follows its part at once. */
const maxEarly = 100
/** opencode makes the context smaller and tries again, without an end. */
const maxOverflows = 3

/** Reads the events of opencode's sessions: words, calls and their results, usage, errors. */
export class SessionEvents {
  readonly words: PartialWords
  readonly #parts: SessionEventsParts
  readonly #usage = new OpencodeUsage()
  readonly #told = new Set<string>()
  readonly #making = new Set<string>()
  /** Calls whose part has come before the question about them. */
  readonly #early = new Map<string, OpencodeShownCall>()
  #overflows = 0
  model: string | null = null
  /** The text that the agent said last, in the session of the run. */
  lastText = ''

  constructor(parts: SessionEventsParts) {
    this.#parts = parts
    this.words = new PartialWords(parts.redactText, parts.redactStream)
  }

  sawProgress(): void {
    this.#overflows = 0
  }

  /** The call waits in the plugin; its part may have come before it. */
  raiseSeen(call: { sessionID: string; callID: string }): DialogueOutput {
    const key = `${call.sessionID}/${call.callID}`
    const early = this.#early.get(key)
    this.#early.delete(key)
    return { events: [], ...(early && this.#raise(early)) }
  }

  #raise(call: OpencodeShownCall): Pick<DialogueOutput, 'asks' | 'write'> {
    const toolCallId = this.#callId(call.sessionID, call.callID)
    return this.#parts.waiting.raise(call, { place: this.#parts.place(), toolCallId })
  }

  #awaitQuestion(call: OpencodeShownCall): void {
    if (this.#parts.waiting.knows(call)) return
    this.#early.set(`${call.sessionID}/${call.callID}`, call)
    forgetOldest(this.#early, maxEarly)
  }

  /** null: an event that is not understood. */
  read(type: string, properties: unknown): SessionOutput | null {
    const { sessions } = this.#parts
    switch (type) {
      case 'session.created':
        return sessions.created(properties) ? { events: [] } : null
      case 'message.updated':
        return sessions.message(properties) ? { events: [] } : null
      case 'message.part.updated':
        return this.#part(properties)
      case 'message.part.delta':
        return this.#piece(properties)
      case 'session.status':
        return this.#status(properties)
      case 'session.error':
        return this.#error(properties)
      default:
        // Parts of what comes whole in a later event, and what is for a screen.
        return { events: [] }
    }
  }

  #part(properties: unknown): SessionOutput | null {
    const parsed = partUpdated.safeParse(properties)
    if (!parsed.success) return null
    const { part } = parsed.data
    if (!this.#parts.sessions.has(part.sessionID)) return null
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return this.#words(part)
      case 'tool': {
        const tool = toolPart.safeParse(part)
        return tool.success ? this.#tool(part.sessionID, tool.data) : null
      }
      case 'step-finish': {
        const step = stepFinish.safeParse(part)
        if (!step.success) return null
        if (!this.#isFirst(`step ${part.id}`)) return { events: [] }
        const isOurs = part.sessionID === this.#parts.sessions.main && this.#parts.sessions.isAgents(part.messageID)
        if (isOurs) this.#parts.facts.lastReason = step.data.reason
        if (isOurs) this.#parts.facts.lastError = null
        return { events: [this.#usage.add(step.data, this.model)] }
      }
      default:
        return { events: [] }
    }
  }

  #words(part: { id: string; sessionID: string; messageID: string; type: string }): SessionOutput {
    const { sessions, facts } = this.#parts
    const words = sessions.isAgents(part.messageID) ? wordsOf(part) : null
    if (words === null || this.#told.has(`words ${part.id}`)) return { events: [] }
    const kind = part.type === 'text' ? 'text' : 'thinking'
    const isOwnText = kind === 'text' && part.sessionID === sessions.main
    const { text, isWhole } = words
    if (!isWhole) return { events: isOwnText ? this.#partial(part.id, text) : [] }
    this.#making.delete(part.id)
    if (text === '') return { events: [] }
    this.#isFirst(`words ${part.id}`)
    facts.didWork = true
    if (isOwnText) this.lastText = text
    const id = isOwnText ? part.id : null
    return { events: this.words.whole(kind, { id, text, parent: sessions.parentOf(part.sessionID) }) }
  }

  /** A part of the agent's own words that is being made. Older versions tell all of it so far each time. */
  #partial(id: string, text: string): RunEventBody[] {
    this.#making.add(id)
    forgetOldest(this.#making, maxMaking)
    return this.#noteWork(this.words.soFar('text', { id, text }))
  }

  /** Takes the next letters of a part that is being made. All of it comes once more, as a part that is whole. */
  #piece(properties: unknown): SessionOutput {
    const parsed = partDelta.safeParse(properties)
    if (!parsed.success) return { events: [] }
    const { sessionID, partID: id, field, delta: text } = parsed.data
    const isOurs = field === 'text' && sessionID === this.#parts.sessions.main && this.#making.has(id)
    return { events: isOurs ? this.#noteWork(this.words.piece('text', { id, text })) : [] }
  }

  #noteWork(events: RunEventBody[]): RunEventBody[] {
    if (events.length > 0) this.#parts.facts.didWork = true
    return events
  }

  #tool(sessionID: string, part: ToolPart): SessionOutput {
    const { sessions, waiting, checksCalls, redactText } = this.#parts
    const { callID, state } = part
    const of = { toolCallId: this.#callId(sessionID, callID), ...sessions.parentOf(sessionID) }
    const started = state.metadata?.sessionId
    // It may go on with a subagent of an earlier run, which is not created anew.
    if (started != null && (sessions.has(started) || part.tool === 'task')) sessions.startedBy(started, of.toolCallId)
    // Its input is not whole yet.
    if (state.status === 'pending') return { events: [] }
    const call = { sessionID, callID, tool: part.tool, input: state.input }
    const events: RunEventBody[] = []
    if (this.#isFirst(`call ${part.id}`)) {
      events.push(callEvent(of, shownCall(part.tool, state.input, this.#parts.place()), redactText))
    }
    if (state.status === 'running') {
      this.#awaitQuestion(call)
      return { events, ...this.#raise(call) }
    }
    if (!this.#isFirst(`result ${part.id}`)) return { events }
    this.#early.delete(`${sessionID}/${callID}`)
    const isCompleted = state.status === 'completed'
    const output = (isCompleted ? state.output : state.error) ?? ''
    events.push(resultEvent({ ...of, isError: !isCompleted || part.tool === noTool, output }, redactText))
    const asked = waiting.ended(call, { isCompleted })
    const isTrouble = asked === false || (asked === null && isCompleted)
    // With the plugin in place this does not happen; if it does, nothing more may.
    if (!isTrouble || !checksCalls) return { events }
    return { events, halt: { why: 'unasked', name: part.tool, wasAsked: asked !== null } }
  }

  #status(properties: unknown): SessionOutput | null {
    const parsed = sessionStatus.safeParse(properties)
    if (!parsed.success) return null
    const { sessionID, status } = parsed.data
    if (!this.#parts.sessions.has(sessionID)) return null
    if (status.type !== 'retry') return { events: [] }
    const { text: message } = cappedText(status.message, this.#parts.redactText)
    const said = sessionID === this.#parts.sessions.main ? this.words.flush() : []
    return { events: [...said, failedRequestEvent({ class: 'retry', message, willRetry: true })] }
  }

  #error(properties: unknown): SessionOutput | null {
    const parsed = sessionError.safeParse(properties)
    if (!parsed.success) return null
    const { facts, sessions } = this.#parts
    const { sessionID, error } = parsed.data
    if (sessionID != null && !sessions.has(sessionID)) return null
    error.data.message = cappedText(error.data.message, this.#parts.redactText).text
    // The session is not at fault when svc ended the work.
    if (error.name === 'MessageAbortedError' && facts.halt !== null) return { events: [] }
    const isOurs = sessionID == null || sessionID === sessions.main
    // The first one says why; opencode tells some twice, the second time with its stack.
    if (isOurs && !facts.isIdle) facts.lastError ??= error
    const isOverflow = error.name === 'ContextOverflowError'
    if (isOverflow) this.#overflows++
    const halt = isOverflow && this.#overflows >= maxOverflows ? { halt: { why: 'overflow' } as const } : {}
    // Words of a request that failed stand before its error.
    const said = isOurs ? this.words.flush() : []
    const failed = facts.isIdle ? [] : [failureEvent(error, isOverflow && halt.halt === undefined)]
    return { events: [...said, ...failed], ...halt }
  }

  #callId(sessionID: string, callID: string): string {
    return sessionID === this.#parts.sessions.main ? callID : `${sessionID}/${callID}`
  }

  #isFirst(key: string): boolean {
    if (this.#told.has(key)) return false
    this.#told.add(key)
    forgetOldest(this.#told, maxTold)
    return true
  }
}

/** Returns what the agent says or thinks in a part; null: nothing, or opencode wrote it itself. */
function wordsOf(part: { type: string }): { text: string; isWhole: boolean } | null {
  const parsed = wordsPart.safeParse(part)
  if (!parsed.success || parsed.data.synthetic === true) return null
  const { text, time } = parsed.data
  return time == null ? null : { text, isWhole: time.end != null }
}

const failureEvent = ({ name, data: { statusCode: httpStatus, message } }: HarnessError, willRetry: boolean) =>
  failedRequestEvent({ class: name, message, httpStatus, willRetry })
