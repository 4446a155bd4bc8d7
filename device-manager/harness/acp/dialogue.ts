import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { CallDecision, DialogueOptions, DialogueOutput, HarnessDialogue } from '../adapter.ts'
import { errorEvent } from '../parts/error-event.ts'
import { rawEvents, resultEvent, streamAsItIs } from '../parts/event-pieces.ts'
import { leftOutEvent } from '../parts/left-out-event.ts'
import { promptWithInstructions } from '../parts/instructions.ts'
import { joined } from '../parts/json-lines.ts'
import { Speech } from '../parts/speech.ts'
import { turnDialogue, type TurnRun } from '../parts/turn-dialogue.ts'
import { Turn } from '../parts/turn.ts'
import { AcpApprovals, cancelled } from './approvals.ts'
import { mustBeNamed, namedCall } from './calls.ts'
import {
  acpOutcome,
  authRequired,
  acpErrorClassOf,
  ownFacts,
  textOf,
  type AcpFacts,
  type OwnAcpFacts,
} from './outcome.ts'
import { outputText, ToolCalls } from './tool-calls.ts'
import { cancelLine, acpRequestIds, initializeLine, promptLine, requestLine, unknownMethodLine } from './lines.ts'
import { serverListOf } from './mcp-servers.ts'
import { acpInputTooLate, tooLittle, unnamed } from './notes.ts'
import { anyProgram, type AcpProgram } from './program.ts'
import { Prompts } from './prompts.ts'
import { mostOf, noUsage } from './usage.ts'
import * as wire from './wire.ts'

/**
 * One run of a program that speaks ACP. What it goes through:
 *
 *     opening    initialize, then a session: a new one, or the one that is gone on with
 *     working    the prompt is sent; updates come, permissions are asked and answered
 *     finished   the last prompt was answered: standard input is closed, by which the program exits
 *
 * ACP has no way into a turn: a person's text is the next prompt of the session, once the turn has ended well.
 */
export function acpDialogue(spec: RunSpec, options: DialogueOptions = {}, program = anyProgram): HarnessDialogue {
  const run = new AcpRun(spec, options, program)
  const dialogue = turnDialogue(run, options, { outcome: (exit) => acpOutcome(run.facts, exit, program) })
  return {
    ...dialogue,
    silent: () => ({ events: run.speech.release() }),
    end: () => joined([{ events: run.speech.flush() }, dialogue.end(), { events: run.undelivered() }]),
    interrupt: () => run.interrupt(),
  }
}

class AcpRun implements TurnRun {
  readonly facts: AcpFacts
  readonly #turn: Turn<OwnAcpFacts>
  readonly speech: Speech
  readonly #cwd: string
  readonly #approvals = new AcpApprovals()
  readonly #calls: ToolCalls
  readonly #program: AcpProgram
  readonly #mcpServers: McpServers
  #opening: { method: string; params: object } | null = null
  #hasSignedIn = false
  /** The session that is gone on with, once it is asked for. */
  #resuming: string | null = null
  #promptCount = 0
  readonly #prompts = new Prompts()
  #usage = noUsage

  constructor(spec: RunSpec, options: DialogueOptions, program: AcpProgram) {
    const { mcpServers = {}, cwd = spec.folder?.rootPath ?? '/', redactStream = streamAsItIs } = options
    this.#turn = new Turn(spec, options, { tooLate: acpInputTooLate, own: ownFacts() })
    this.facts = this.#turn.facts
    const { redactText } = this.#turn
    this.speech = new Speech(redactText, redactStream)
    this.#program = program
    this.#mcpServers = mcpServers
    this.#cwd = cwd
    this.#calls = new ToolCalls(spec, { redactText, mcpServers, cwds: [cwd, options.realCwd ?? cwd] })
  }

  open(): DialogueOutput {
    return { events: [], write: initializeLine() }
  }

  answer(askId: string, decision: CallDecision): DialogueOutput {
    const answered = this.#approvals.answer(askId, decision)
    if (answered === null) return { events: [] }
    this.#calls.answered(askId, answered.isAllowed)
    const isStop = decision.behavior === 'deny' && decision.stop === true
    if (isStop) this.#prompts.stop()
    else if (decision.behavior === 'deny') this.#prompts.refused(decision.message)
    return { events: [], write: answered.write + (isStop ? cancelLine(this.facts.sessionId) : '') }
  }

  interrupt(): DialogueOutput {
    this.#prompts.stop()
    return { events: [], ...(this.#turn.phase === 'working' && { write: cancelLine(this.facts.sessionId) }) }
  }

  input(text: string): DialogueOutput {
    return { events: !this.#turn.isFinished && this.#prompts.add(text) ? [] : [acpInputTooLate] }
  }

  /** Tells of each text that no prompt took. */
  undelivered(): RunEventBody[] {
    return this.#prompts.undelivered().map(() => acpInputTooLate)
  }

  /** null: not a line that is understood. */
  line(value: Record<string, unknown>): DialogueOutput | null {
    if (value['method'] === undefined) return this.#reply(value)
    if (value['id'] !== undefined) return this.#request(value)
    return value['method'] === 'session/update' ? this.#update(value['params']) : null
  }

  #request(value: Record<string, unknown>): DialogueOutput | null {
    const parsed = wire.acpRequest.safeParse(value)
    if (!parsed.success) return null
    const { id, method, params } = parsed.data
    const isTwin = this.#approvals.forget(id)
    const asRead = rawEvents(Buffer.from(JSON.stringify(value)), 'stdout', this.#turn.redactText)
    if (method !== 'session/request_permission') return { events: asRead, write: unknownMethodLine(id, method) }
    const wanted = wire.permissionRequest.safeParse(params)
    if (!wanted.success || this.#turn.phase !== 'working' || wanted.data.sessionId !== this.facts.sessionId)
      return { events: asRead, write: cancelled(id) }
    const { toolCall } = wanted.data
    const call = this.#calls.note(toolCall)
    if (call === null) return { events: asRead, write: cancelled(id) }
    const mcpName = this.#calls.mcpNameOf(toolCall)
    const events = [...this.speech.flush(), ...this.#calls.told(toolCall.toolCallId, call)]
    const kind = toolCall.kind ?? call.kind
    const shown = { kind, rawInput: toolCall.rawInput, mcpName }
    const name = namedCall(kind, toolCall.rawInput, mcpName)?.name
    if (name !== undefined && mustBeNamed(this.#turn.spec, name)) {
      this.#calls.noteAsked(toolCall.toolCallId, { shown, ask: undefined })
      const { write } = this.#approvals.refuse(id, wanted.data)
      this.#prompts.refused(tooLittle)
      return { events: [...events, unnamed(name)], write }
    }
    const { ask, write } = isTwin
      ? { write: cancelled(id) }
      : this.#approvals.raise(id, { ...wanted.data, toolCall: { ...toolCall, kind }, mcpName })
    this.#calls.noteAsked(toolCall.toolCallId, { shown, ask })
    if (ask === undefined) this.#prompts.refused(tooLittle)
    return { events, ...(write !== undefined && { write }), ...(ask && { asks: [ask] }) }
  }

  #reply(value: Record<string, unknown>): DialogueOutput | null {
    const parsed = wire.acpReply.safeParse(value)
    if (!parsed.success) return null
    const { id, result, error } = parsed.data
    if (this.#turn.phase === 'working')
      return id === acpRequestIds.prompt + this.#promptCount ? this.#ended(result, error) : null
    if (this.#turn.phase !== 'opening') return null
    if (error !== undefined) return this.#signIn(error, id) ?? this.#refused(error, id)
    if (id === acpRequestIds.authenticate && this.#hasSignedIn) return { events: [], write: this.#openSession() }
    if (id === acpRequestIds.initialize) return this.#initialized(result)
    return id === acpRequestIds.session ? this.#session(result) : null
  }

  /** null: it is not for want of a sign-in, or that was tried. */
  #signIn({ code }: wire.RpcError, id: number): DialogueOutput | null {
    const { signInMethod: methodId } = this.#program
    const isTried = this.#opening === null || this.#hasSignedIn
    if (code !== authRequired || id !== acpRequestIds.session || methodId === undefined || isTried) return null
    this.#hasSignedIn = true
    return { events: [], write: requestLine(acpRequestIds.authenticate, 'authenticate', { methodId }) }
  }

  #openSession(): string {
    const { method, params } = this.#opening!
    return requestLine(acpRequestIds.session, method, params)
  }

  #refused(error: wire.RpcError, id: number): DialogueOutput {
    const message = this.#turn.capped(textOf(error))
    this.facts.refusedFor = { ...error, message }
    this.facts.isResumeRefused = id === acpRequestIds.session && this.#resuming !== null && error.code !== authRequired
    return this.#turn.refuse(message)
  }

  #initialized(result: unknown): DialogueOutput {
    const parsed = wire.initialized.safeParse(result)
    if (!parsed.success || parsed.data.protocolVersion !== 1) {
      const message = 'It does not speak version 1 of the Agent Client Protocol.'
      return this.#refused({ code: 0, message }, acpRequestIds.initialize)
    }
    const { loadSession, sessionCapabilities, mcpCapabilities } = parsed.data.agentCapabilities
    this.facts.keepsSessions = loadSession || sessionCapabilities.resume
    if (this.facts.keepsSessions) this.#resuming = this.#turn.spec.resumeSessionId
    // `resume` does not tell again what was said.
    const resume = sessionCapabilities.resume ? 'session/resume' : 'session/load'
    const { servers, leftOut } = serverListOf(this.#mcpServers, mcpCapabilities)
    const params = { cwd: this.#cwd, mcpServers: servers }
    this.#opening =
      this.#resuming === null
        ? { method: 'session/new', params }
        : { method: resume, params: { sessionId: this.#resuming, ...params } }
    return { events: leftOut.map(leftOutEvent), write: this.#openSession() }
  }

  #session(result: unknown): DialogueOutput {
    const made = wire.newSession.safeParse(result)
    const sessionId = this.#resuming ?? (made.success ? made.data.sessionId : null)
    if (sessionId === null) return this.#refused({ code: 0, message: 'It made no session.' }, acpRequestIds.session)
    this.#turn.phase = 'working'
    const texts = promptWithInstructions({ ...this.#turn.spec, resumeSessionId: this.#resuming })
    const event = this.#turn.session(sessionId, { isResumed: this.#resuming !== null })
    return { events: [event], write: promptLine(sessionId, 0, texts) }
  }

  #update(params: unknown): DialogueOutput | null {
    const parsed = wire.sessionUpdate.safeParse(params)
    if (!parsed.success) return null
    const { sessionId, update } = parsed.data
    // A session that is loaded tells first what was said in it before.
    if (this.#turn.phase === 'opening' && sessionId === this.#resuming) return { events: [] }
    if (sessionId !== this.facts.sessionId) return this.#elsewhere(update)
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
      case 'agent_thought_chunk':
        return this.#words(update)
      case 'tool_call':
      case 'tool_call_update':
        return this.#tool(update)
      case 'user_message_chunk':
      case 'available_commands_update':
      case 'current_mode_update':
      case 'config_option_update':
      case 'session_info_update':
      case 'usage_update':
        return { events: [] }
      default:
        return null
    }
  }

  #words(update: { sessionUpdate: string }): DialogueOutput | null {
    const parsed = wire.textChunk.safeParse(update)
    if (!parsed.success) return null
    this.facts.didWork = true
    const { text } = parsed.data.content
    if (text.trim() !== '') this.#prompts.sawWords()
    const kind = update.sessionUpdate === 'agent_message_chunk' ? 'text' : 'thinking'
    return { events: this.speech.say(kind, text), ...this.#modelActs() }
  }

  #tool(update: unknown): DialogueOutput | null {
    const parsed = wire.toolCall.safeParse(update)
    if (!parsed.success) return null
    this.facts.didWork = true
    const said = this.speech.flush()
    this.speech.forgetAnswer()
    const { toolCallId, status } = parsed.data
    const stop = this.#calls.get(toolCallId) !== undefined ? {} : this.#modelActs()
    const call = this.#calls.note(parsed.data)
    if (call === null) return { events: said, ...this.#unasked('too many tools at once') }
    if (status === 'in_progress') call.hasBegun = true
    if (status !== 'completed' && status !== 'failed')
      return { events: [...said, ...(status === 'in_progress' ? this.#calls.told(toolCallId, call) : [])], ...stop }
    this.#turn.modelIsAsked()
    const told = { toolCallId, isError: status === 'failed', output: outputText(parsed.data) }
    const events = [...said, ...this.#calls.told(toolCallId, call), resultEvent(told, this.#turn.redactText)]
    const trouble = this.#calls.end(toolCallId, call, status)
    return { events, ...(trouble === null ? stop : this.#unasked(trouble.name, trouble.wasAsked)) }
  }

  /** A session that svc did not begin: its words are nothing to this run, but what it runs was not asked. */
  #elsewhere(update: unknown): DialogueOutput | null {
    const parsed = wire.toolCall.safeParse(update)
    if (!parsed.success || parsed.data.status !== 'completed') return null
    const trouble = this.#unasked(namedCall(parsed.data.kind, parsed.data.rawInput)?.name ?? 'a tool')
    return trouble.endNow === undefined
      ? null
      : { events: rawEvents(Buffer.from(JSON.stringify(update)), 'stdout', this.#turn.redactText), ...trouble }
  }

  /** Nothing more may happen, whatever the program makes of it. */
  #unasked(name: string, wasAsked = false): { endNow?: true } {
    return this.#turn.sawUnasked({ name, wasAsked }) ? { endNow: true } : {}
  }

  #modelActs(): { write?: string; finished?: true } {
    return this.#turn.modelActs() ? { write: cancelLine(this.facts.sessionId), finished: true } : {}
  }

  #ended(result: unknown, error: wire.RpcError | undefined): DialogueOutput | null {
    const parsed = wire.promptResult.safeParse(result)
    if (error === undefined && !parsed.success) return null
    const events = this.speech.flush()
    if (error !== undefined) {
      const message = this.#turn.capped(textOf(error))
      this.facts.failure = { ...error, message }
      events.push(errorEvent(acpErrorClassOf(error), message))
    } else if (parsed.success) {
      this.facts.stopReason = parsed.data.stopReason
      const { usage } = parsed.data
      // Some programs count over the whole session: what a resumed one says would be counted twice.
      if (usage && this.#resuming === null) {
        this.#usage = mostOf(this.#usage, usage)
        events.push({ kind: 'usage', data: this.#usage })
      }
    }
    const { unasked, maxTurnsReached } = this.facts
    const isEnded = error === undefined && this.facts.stopReason === 'end_turn'
    const next = this.#prompts.next(isEnded && unasked === null && maxTurnsReached === null)
    this.facts.endedByRefusal = next.failure
    events.push(...next.events)
    if (next.texts.length > 0) return { events, write: this.#nextPrompt(next.texts) }
    const isError = error !== undefined || this.facts.stopReason !== 'end_turn' || this.facts.endedByRefusal !== null
    events.push(this.#turn.result(this.facts.failure?.message ?? this.speech.answer, isError))
    return this.#turn.finish(events)
  }

  #nextPrompt(texts: readonly string[]): string {
    this.speech.forgetAnswer()
    this.#turn.modelIsAsked()
    this.facts.stopReason = null
    return promptLine(this.facts.sessionId, ++this.#promptCount, texts)
  }
}
