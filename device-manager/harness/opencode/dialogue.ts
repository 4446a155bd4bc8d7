import type { z } from 'zod'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { CallDecision, DialogueOptions, DialogueOutput, HarnessDialogue } from '../adapter.ts'
import { inputTooLate } from '../parts/error-event.ts'
import { rawEvents, streamAsItIs } from '../parts/event-pieces.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { httpLine } from '../parts/http-lines.ts'
import { joined, jsonObject } from '../parts/json-lines.ts'
import type { PartialWords } from '../parts/partial-words.ts'
import { turnDialogue, type TurnRun } from '../parts/turn-dialogue.ts'
import { Turn } from '../parts/turn.ts'
import type { CallPlace } from './calls.ts'
import { WaitingCalls } from './waiting-calls.ts'
import { abortSession, opencodeOrderIds, openSession, replyPermission, sendPrompt, stdinLine } from './orders.ts'
import { opencodeOutcome, type Halt, type OpencodeFacts, type OwnOpencodeFacts } from './outcome.ts'
import { SessionEvents } from './session-events.ts'
import { Sessions } from './sessions.ts'
import {
  event,
  pluginLine,
  permissionAsked,
  sessionAnswer,
  sessionIdle,
  type PluginCall,
  type PluginRetry,
  type PluginTurn,
} from './wire.ts'

/** An event can hold the output of a tool; a line longer than this is kept raw and the next one read again. */
const maxLineBytes = 40 * 1024 * 1024
/** A provider that wants to be asked again later than this ends the run. */
const longestWaitMs = 120_000
const maxTexts = 100

/**
 * One run of opencode. What it goes through:
 *
 *     starting   the server comes up; svc's plugin says that it is in place
 *     opening    the session is made, or the one to be gone on with is looked up
 *     working    the prompt is sent; events come, and calls wait in the plugin for their answers
 *     finished   the session is idle, or the work was halted: standard input is closed, by which opencode exits
 *
 * A person's text before `working` is sent after the prompt; in `finished` it is too late, and an event says so. No
 * prompt is sent before the plugin is in place: without it nothing would be asked.
 */
export function opencodeDialogue(spec: RunSpec, options: DialogueOptions = {}): HarnessDialogue {
  const run = new OpencodeRun(spec, options)
  const dialogue = turnDialogue(run, options, { outcome: (exit) => opencodeOutcome(run.facts, exit), maxLineBytes })
  return {
    ...dialogue,
    silent: () => ({ events: run.words.release() }),
    end: () => joined([{ events: run.words.flush() }, dialogue.end()]),
  }
}

class OpencodeRun implements TurnRun {
  readonly facts: OpencodeFacts
  readonly #turn: Turn<OwnOpencodeFacts>
  readonly #waiting = new WaitingCalls()
  readonly #sessions = new Sessions()
  readonly #events: SessionEvents
  #place: CallPlace = { servers: [], directory: '' }
  #inputs = 0
  /** Texts of a person that no request to the model has followed yet: the session does not rest before that. */
  #unheard = 0
  #isResting = false
  #turns = 0

  constructor(spec: RunSpec, options: DialogueOptions) {
    const own = { isSessionUnknown: false, halt: null, isIdle: false, lastReason: null, lastError: null }
    this.#turn = new Turn(spec, options, { tooLate, own, beginsIn: 'starting', maxEarly: maxTexts })
    this.facts = this.#turn.facts
    this.#events = new SessionEvents({
      facts: this.facts,
      waiting: this.#waiting,
      sessions: this.#sessions,
      place: () => this.#place,
      checksCalls: hasCallChecks(spec),
      redactText: this.#turn.redactText,
      redactStream: options.redactStream ?? streamAsItIs,
    })
  }

  get words(): PartialWords {
    return this.#events.words
  }

  open(): DialogueOutput {
    return { events: [] }
  }

  input(text: string): DialogueOutput {
    const { sessionId } = this.facts
    const isTaken = this.#turn.phase === 'working' && sessionId !== null
    return this.#turn.input(text, isTaken ? () => this.#add(sessionId, text) : null)
  }

  answer(askId: string, decision: CallDecision): DialogueOutput {
    if (decision.behavior === 'deny' && decision.stop === true) this.facts.halt ??= { why: 'asked' }
    const write = this.#waiting.answer(askId, decision)
    return { events: [], ...(write !== null && { write }) }
  }

  /** null: not a line that is understood. */
  line(value: Record<string, unknown>): DialogueOutput | null {
    const parsed = httpLine.safeParse(value)
    if (!parsed.success) return null
    const line = parsed.data
    if ('listening' in line) return { events: [] }
    if ('stdout' in line) return this.#printed(line.stdout)
    if ('answer' in line) return this.#answered(line.answer)
    if ('lost' in line) return this.#halt({ why: 'lost', reason: line.lost })
    const known = event.safeParse(line.event)
    return known.success ? this.#event(known.data) : null
  }

  #printed(text: string): DialogueOutput {
    const bytes = Buffer.from(text)
    const parsed = pluginLine.safeParse(jsonObject(bytes))
    if (!parsed.success) return { events: rawEvents(Buffer.from(`${text}\n`), 'stdout', this.#turn.redactText) }
    const line = parsed.data
    switch (line.svc) {
      case 'failed':
        return this.#refuse(`svc's plugin failed: ${this.#turn.capped(line.message)}`, false)
      case 'ready':
        return this.#ready(line)
      case 'call':
        return this.#call(line)
      case 'turn':
        return this.#modelIsAsked(line)
      case 'retry':
        return this.#retry(line)
    }
  }

  #ready({ directory, servers }: CallPlace): DialogueOutput {
    if (this.#turn.phase !== 'starting') return { events: [] }
    this.#turn.phase = 'opening'
    this.#place = { directory, servers }
    return { events: [], write: openSession(this.#turn.spec) }
  }

  #answered({ id, status, body }: { id: number; status: number; body: unknown }): DialogueOutput | null {
    const isGood = status >= 200 && status < 300
    if (id === opencodeOrderIds.session) return isGood ? this.#opened(body) : this.#refused(status, body)
    if (id === opencodeOrderIds.prompt) return isGood ? { events: [] } : this.#refused(status, body)
    if (id === opencodeOrderIds.abort || id === opencodeOrderIds.permission) return { events: [] }
    if (isGood) return { events: [] }
    this.#unheard = 0
    return joined([{ events: [tooLate] }, this.#isResting ? this.#rest() : { events: [] }])
  }

  #opened(body: unknown): DialogueOutput | null {
    const parsed = sessionAnswer.safeParse(body)
    if (!parsed.success || this.#turn.phase !== 'opening') return null
    const { resumeSessionId, prompt, model } = this.#turn.spec
    const ofFolder = [parsed.data].flat().filter(({ directory }) => directory === this.#place.directory)
    const found = ofFolder.find(({ id }) => id === (resumeSessionId ?? id))
    if (found === undefined) {
      const isGone = resumeSessionId !== null
      return this.#refuse(isGone ? gone(resumeSessionId) : 'it works in another folder than the run.', isGone)
    }
    const { id: sessionId } = found
    this.#turn.phase = 'working'
    this.#sessions.begin(sessionId)
    const first = sendPrompt(this.#turn.spec, { id: opencodeOrderIds.prompt, sessionId, text: prompt })
    const write = [first, ...this.#turn.takeEarly().map((text) => this.#add(sessionId, text))].join('')
    return { events: [this.#turn.session(sessionId, { model })], write }
  }

  #add(sessionId: string, text: string): string {
    this.#unheard++
    return sendPrompt(this.#turn.spec, { id: opencodeOrderIds.firstInput + this.#inputs++, sessionId, text })
  }

  #refused(status: number, body: unknown): DialogueOutput {
    const said = typeof body === 'string' ? body : JSON.stringify(body)
    return this.#refuse(`HTTP ${status}: ${this.#turn.capped(said ?? '').slice(0, 1_000)}`, false)
  }

  #refuse(message: string, isSessionUnknown: boolean): DialogueOutput {
    if (this.facts.refusal === null) this.facts.isSessionUnknown = isSessionUnknown
    return this.#turn.refuse(message)
  }

  #call(call: PluginCall): DialogueOutput {
    if (this.#turn.isFinished) return { events: [], write: this.#waiting.refuse(call) }
    // A session that nobody of this run began: whoever did that does not get svc's word for it.
    const write = this.#waiting.hold(call)
    this.facts.didWork = true
    this.#events.sawProgress()
    const seen = this.#events.raiseSeen(call)
    return { ...seen, write: (write ?? '') + (seen.write ?? '') }
  }

  /** Before each request to the model: the run may be over. A request that is not answered is not made. */
  #modelIsAsked(turn: PluginTurn): DialogueOutput {
    const { maxTurns, model } = this.#turn.spec
    this.#events.model = turn.model
    if (this.facts.halt !== null) return this.#halt(this.facts.halt)
    // Without any provider it takes free ones of opencode's, which the person has not chosen.
    if (turn.isPublic && model === null) return this.#halt({ why: 'signed_out' })
    const isStep = turn.sessionID === this.facts.sessionId && !Sessions.isAboutTheSession(turn.agent) && !turn.isRetry
    if (isStep && maxTurns !== null && this.#turns >= maxTurns) return this.#halt({ why: 'turns', turns: maxTurns })
    if (isStep) {
      this.#turns++
      this.#unheard = 0
      this.#isResting = false
    }
    return { events: [], write: stdinLine({ id: turn.id }) }
  }

  #retry({ message, until, waitMs }: PluginRetry): DialogueOutput {
    if (waitMs <= longestWaitMs) return { events: [] }
    const told = this.#turn.capped(message).slice(0, 1_000)
    return this.#halt({ why: 'long_wait', message: told, until, waitMs })
  }

  #event({ type, properties }: z.infer<typeof event>): DialogueOutput | null {
    if (type === 'permission.asked') return this.#permission(properties)
    if (type === 'session.idle') return this.#idle(properties)
    const output = this.#events.read(type, properties)
    return output?.halt === undefined ? output : joined([output, this.#halt(output.halt)])
  }

  /** opencode asks after its plugin has let the call pass: only then is the answer yes. */
  #permission(properties: unknown): DialogueOutput | null {
    const parsed = permissionAsked.safeParse(properties)
    if (!parsed.success) return null
    const { id, sessionID, tool } = parsed.data
    const isAllowed = tool != null && this.#waiting.allowed({ sessionID, callID: tool.callID })
    return { events: [], write: replyPermission(id, isAllowed) }
  }

  #idle(properties: unknown): DialogueOutput | null {
    const parsed = sessionIdle.safeParse(properties)
    if (!parsed.success) return null
    // A subagent's, or a second one.
    if (parsed.data.sessionID !== this.facts.sessionId || this.facts.isIdle) return { events: [] }
    this.#isResting = true
    const goesOn = this.#unheard > 0 && this.facts.lastError === null && this.facts.halt === null
    return goesOn ? { events: [] } : this.#rest()
  }

  #rest(): DialogueOutput {
    this.facts.isIdle = true
    const { lastError } = this.facts
    const isError = lastError !== null || this.facts.halt !== null
    const said = lastError?.data.message ?? this.#events.lastText
    return this.#turn.finish([...this.words.flush(), this.#turn.result(said, isError)])
  }

  /** The session's work is ended; it comes to rest by itself, or the run host ends it. */
  #halt(halt: Halt): DialogueOutput {
    this.facts.halt ??= halt
    if (this.#turn.isFinished) return { events: [] }
    if (halt.why === 'lost') return this.#turn.finish()
    const { sessionId } = this.facts
    return { events: [], finished: true, ...(sessionId !== null && { write: abortSession(sessionId) }) }
  }
}

const gone = (sessionId: string): string =>
  `The opencode session ${sessionId} is not on this machine any more, or belongs to another folder.`

const tooLate = inputTooLate('opencode')
