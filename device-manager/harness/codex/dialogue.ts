import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { CallDecision, DialogueOptions, DialogueOutput, HarnessDialogue } from '../adapter.ts'
import { AskedCalls, shownDigest, isSameText } from '../parts/asked-calls.ts'
import { callEvent, resultEvent, streamAsItIs } from '../parts/event-pieces.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { joined } from '../parts/json-lines.ts'
import { leftOutEvent } from '../parts/left-out-event.ts'
import type { GivenSkill } from '../parts/skills.ts'
import { turnDialogue, type TurnRun } from '../parts/turn-dialogue.ts'
import { Turn } from '../parts/turn.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { CodexApprovals } from './approvals.ts'
import { callOf, codexResultOf, shownOf, wordsOf } from './items.ts'
import {
  codexRequestIds,
  initializeLines,
  interruptLine,
  settingsLine,
  skillsLine,
  steerLine,
  threadLine,
  turnLine,
} from './lines.ts'
import { threadConfig } from './mcp-servers.ts'
import { Notes, noSkills, codexInputTooLate } from './notes.ts'
import { Reasons } from './reasons.ts'
import { threadOf, Threads } from './threads.ts'
import { CodexUsageMeter } from './usage.ts'
import { noteAsked, readsResource, wasMade, whatActed } from './unasked.ts'
import { CodexWords } from './words.ts'
import { Errors } from './errors.ts'
import { codexOutcome, type CodexFacts, type OwnCodexFacts } from './outcome.ts'
import {
  fileItem,
  forScreens,
  itemNote,
  codexReply,
  threadResult,
  turnCompleted,
  turnResult,
  type FileChange,
  type Item,
} from './wire.ts'

/** Patches that wait for their approval; codex asks for each at once. */
const maxPatches = 100

/**
 * One run of codex. What it goes through:
 *
 *     opening    initialize and, where MCP servers are to be judged or added, the settings are asked for; then the thread, under
 *                the policy by which everything is asked
 *     working    the turn is started with the prompt; items come, approvals are asked and answered
 *     finished   the turn has ended: standard input is closed, by which codex exits
 *
 * A person's text in `opening` is sent with the prompt; in `finished` it is too late, and an event says so.
 */
export function codexDialogue(spec: RunSpec, options: DialogueOptions = {}): HarnessDialogue {
  const run = new CodexRun(spec, options)
  const dialogue = turnDialogue(run, options, { outcome: (exit) => codexOutcome(run.facts, exit) })
  return {
    ...dialogue,
    silent: () => ({ events: run.words.release() }),
    end: () => joined([{ events: run.words.flush() }, dialogue.end()]),
  }
}

class CodexRun implements TurnRun {
  readonly facts: CodexFacts
  readonly words: CodexWords
  readonly #turn: Turn<OwnCodexFacts>
  readonly #mcpServers: McpServers
  readonly #cwd: string | undefined
  readonly #skills: readonly GivenSkill[]
  #hasSettings = false
  readonly #approvals = new CodexApprovals()
  readonly #patches = new Map<string, readonly FileChange[]>()
  readonly #asked = new AskedCalls(isSameText)
  readonly #threads = new Threads()
  readonly #usage = new CodexUsageMeter(this.#threads)
  readonly #notes = new Notes()
  readonly #errors: Errors
  #turnId: string | null = null
  #model: string | null
  #lastMessage = ''
  #inputs = 0
  readonly #reasons = new Reasons()

  constructor(spec: RunSpec, options: DialogueOptions) {
    const { mcpServers = {}, cwd, skills = [] } = options
    this.#cwd = cwd
    this.#skills = skills
    this.#mcpServers = mcpServers
    this.#model = spec.model
    this.#turn = new Turn(spec, options, {
      tooLate: codexInputTooLate,
      own: { turn: null, lastError: null, limits: {}, unreached: null },
    })
    this.facts = this.#turn.facts
    this.words = new CodexWords(this.#turn.redactText, options.redactStream ?? streamAsItIs)
    this.#errors = new Errors(this.facts, { threads: this.#threads, redactText: this.#turn.redactText })
  }

  open(): DialogueOutput {
    const readsSettings = hasCallChecks(this.#turn.spec) || Object.keys(this.#mcpServers).length > 0
    const next = readsSettings ? settingsLine(this.#cwd) : threadLine(this.#turn.spec, {})
    const skills = this.#skills.length === 0 ? '' : skillsLine(this.#skills)
    return { events: [], write: initializeLines() + skills + next }
  }

  #settings(result: unknown): DialogueOutput {
    if (this.#turn.phase !== 'opening' || this.#hasSettings) return { events: [] }
    const made = threadConfig(result, { servers: this.#mcpServers, checksCalls: hasCallChecks(this.#turn.spec) })
    if (made === null) return this.#turn.refuse('It does not say which MCP servers it has; update codex.')
    this.#hasSettings = true
    return { events: made.leftOut.map(leftOutEvent), write: threadLine(this.#turn.spec, made.config) }
  }

  input(text: string): DialogueOutput {
    return this.#turn.input(text, this.#turnId === null ? null : () => this.#steer(text))
  }

  answer(askId: string, decision: CallDecision): DialogueOutput {
    const answered = this.#approvals.answer(askId, decision)
    this.#asked.answered(askId, answered?.isAllowed ?? null)
    if (answered === null) return { events: [] }
    return { events: [], write: this.#reasons.before(answered.write, answered.told) }
  }

  /** null: not a line that is understood. */
  line(value: Record<string, unknown>): DialogueOutput | null {
    const { method } = value
    if (method === undefined) return this.#reply(value)
    if (value['id'] !== undefined) return this.#request(value)
    const { params } = value
    switch (method) {
      case 'item/started':
      case 'item/completed':
        return this.#item(method === 'item/started' ? 'started' : 'completed', params)
      case 'item/agentMessage/delta':
        return this.#piece(params)
      case 'thread/tokenUsage/updated':
        return this.#asOutput(this.#usage.read(params, { own: this.#ownTurn(), model: this.#model }))
      case 'account/rateLimits/updated':
        return this.#asOutput(this.#errors.limits(params))
      case 'warning':
      case 'configWarning':
        return this.#asOutput(this.#notes.warning(params))
      case 'error':
        return this.#error(params)
      case 'turn/completed':
        return this.#turnCompleted(params)
      default:
        return typeof method === 'string' && forScreens.test(method) ? { events: [] } : null
    }
  }

  logLine(text: string): readonly RunEventBody[] | null {
    return this.#notes.logLine(text)
  }

  #asOutput(events: RunEventBody[] | null): DialogueOutput | null {
    return events && { events }
  }

  #ownTurn() {
    return { threadId: this.facts.sessionId, turnId: this.#turnId }
  }

  #request(value: Record<string, unknown>): DialogueOutput | null {
    const changesOf = (threadId: string, itemId: string) => this.#patches.get(this.#callId(threadId, itemId)) ?? null
    const step = this.#turn.isFinished ? this.#approvals.refuse(value) : this.#approvals.request(value, changesOf)
    if (step === null) return null
    const asks = noteAsked(this.#asked, step, (itemId) => this.#callId(threadOf(value), itemId))
    const write = step.write && this.#reasons.before(step.write, step.told ?? null)
    return { events: [], ...(write !== undefined && { write }), ...(asks && { asks }) }
  }

  #reply(value: Record<string, unknown>): DialogueOutput | null {
    const parsed = codexReply.safeParse(value)
    if (!parsed.success) return null
    const { id, result, error } = parsed.data
    if (id <= codexRequestIds.firstReason) return this.#held(this.#reasons.taken(id))
    if (id >= codexRequestIds.firstInput) return { events: error === undefined ? [] : [codexInputTooLate] }
    if (id === codexRequestIds.interrupt || (id === codexRequestIds.initialize && error === undefined))
      return { events: [] }
    // That it takes none is of interest where somebody chose some.
    const isMissed = error !== undefined && this.#skills.some(({ isBuiltin }) => isBuiltin !== true)
    if (id === codexRequestIds.skills) return { events: isMissed ? [noSkills] : [] }
    if (error !== undefined) return this.#isAwaited(id) ? this.#turn.refuse(this.#turn.capped(error.message)) : null
    if (id === codexRequestIds.settings) return this.#settings(result)
    return id === codexRequestIds.thread
      ? this.#thread(result)
      : id === codexRequestIds.turn
        ? this.#turnBegan(result)
        : null
  }

  /** An answer that waited is of no use once the turn is over. */
  #held(answer: string | null): DialogueOutput | null {
    if (answer === null) return null
    return { events: [], ...(this.#turn.phase === 'working' && { write: answer }) }
  }

  #isAwaited(id: number): boolean {
    if (this.#turn.phase === 'working') return id === codexRequestIds.turn && this.#turnId === null
    return (
      this.#turn.phase === 'opening' &&
      (id === codexRequestIds.initialize || id === codexRequestIds.settings || id === codexRequestIds.thread)
    )
  }

  #thread(result: unknown): DialogueOutput | null {
    const parsed = threadResult.safeParse(result)
    if (!parsed.success || this.#turn.phase !== 'opening') return null
    const { id: sessionId, model } = parsed.data.thread
    this.#turn.phase = 'working'
    this.#threads.begin(sessionId)
    this.#model = model ?? this.#model
    const write = turnLine(this.#turn.spec, sessionId, [this.#turn.spec.prompt, ...this.#turn.takeEarly()])
    return { events: [this.#turn.session(sessionId, { model: this.#model })], write }
  }

  #turnBegan(result: unknown): DialogueOutput | null {
    const parsed = turnResult.safeParse(result)
    if (!parsed.success) return null
    this.#turnId ??= parsed.data.turn.id
    const write = this.#turn
      .takeEarly()
      .map((text) => this.#steer(text))
      .join('')
    return { events: [], ...(write !== '' && { write }) }
  }

  #steer(text: string): string {
    return steerLine(codexRequestIds.firstInput + this.#inputs++, {
      threadId: this.facts.sessionId,
      turnId: this.#turnId,
      text,
    })
  }

  #item(when: 'started' | 'completed', params: unknown): DialogueOutput | null {
    const parsed = itemNote.safeParse(params)
    if (!parsed.success) return null
    const { threadId, item } = parsed.data
    const call = callOf(item)
    this.#threads.note(threadId, { item, toolCallId: this.#callId(threadId, item.id) })
    if (call === null) return this.#words(when, { threadId, item })
    this.facts.didWork = true
    this.#errors.sawProgress()
    const toolCallId = this.#callId(threadId, item.id)
    if (when === 'completed') {
      this.#patches.delete(toolCallId)
      const events = [resultEvent({ toolCallId, ...codexResultOf(item) }, this.#turn.redactText)]
      return { events, ...this.#stopUnlessAsked(toolCallId, item) }
    }
    const patch = item.type === 'fileChange' ? fileItem.safeParse(item) : null
    if (patch?.success && this.#patches.size < maxPatches) this.#patches.set(toolCallId, patch.data.changes)
    const stop = readsResource(item) ? this.#stopUnlessAsked(toolCallId, item) : this.#interruptWhenSpent(threadId)
    return { events: [callEvent({ toolCallId }, call, this.#turn.redactText)], ...stop }
  }

  #words(when: 'started' | 'completed', { threadId, item }: { threadId: string; item: Item }): DialogueOutput | null {
    if (!this.#threads.has(threadId)) return null
    if (item.type === 'userMessage') return { events: [] }
    const isOwn = threadId === this.facts.sessionId
    const isModel = item.type === 'agentMessage' || item.type === 'reasoning'
    if (when === 'started') {
      if (isOwn) this.words.begin(item)
      return isModel ? { events: [], ...this.#interruptWhenSpent(threadId) } : { events: [] }
    }
    if (!isModel) return null
    this.facts.didWork = true
    this.#errors.sawProgress()
    // A subagent's words are not the answer.
    if (item.type === 'agentMessage' && isOwn) this.#lastMessage = wordsOf(item)?.text ?? ''
    return { events: this.words.whole(item, { isOwn, parent: this.#threads.parentOf(threadId) }) }
  }

  /** What the agent says now; all of it comes once more as an item that is whole. */
  #piece(params: unknown): DialogueOutput {
    const events = this.words.piece(params, this.facts.sessionId) ?? []
    if (events.length > 0) this.facts.didWork = true
    return { events }
  }

  /** Under the policy that was asked for, this does not happen; if it does, nothing more may. */
  #stopUnlessAsked(toolCallId: string, item: Item): { write?: string } {
    const made = { shown: shownDigest(shownOf(item)), isMade: wasMade(item) }
    const isAsked = this.#asked.take(toolCallId, made) ?? this.#asked.take(callOf(item)?.name ?? '', made)
    const acted = whatActed(item, this.#turn.spec.permissions)
    if (isAsked === true || acted === null) return {}
    return this.#turn.sawUnasked({ name: acted, wasAsked: isAsked !== null }) ? this.#interrupt() : {}
  }

  /** codex counts no turns: an answer of the model that begins after the last one allowed is interrupted. */
  #interruptWhenSpent(threadId: string): { write?: string } {
    if (threadId !== this.facts.sessionId) return {}
    return this.#turn.isPastLimit(this.#usage.modelCalls) ? this.#interrupt() : {}
  }

  #interrupt(): { write?: string } {
    const { sessionId: threadId } = this.facts
    if (threadId === null || this.#turnId === null) return {}
    return { write: interruptLine(threadId, this.#turnId) }
  }

  #error(params: unknown): DialogueOutput | null {
    const error = this.#errors.read(params)
    if (error === null) return null
    // Words of a request that failed stand before its error.
    const said = error.isOwn ? this.words.flush() : []
    return { events: [...said, ...error.events], ...(error.isUnreached && this.#interrupt()) }
  }

  #turnCompleted(params: unknown): DialogueOutput | null {
    const parsed = turnCompleted.safeParse(params)
    if (!parsed.success) return null
    const { threadId, turn } = parsed.data
    // A subagent's.
    if (threadId !== this.facts.sessionId) return this.#threads.has(threadId) ? { events: [] } : null
    if (this.#turn.isFinished || turn.id !== (this.#turnId ?? turn.id)) return null
    if (turn.error) turn.error.message = this.#turn.capped(turn.error.message)
    this.facts.turn = turn
    const isError = turn.status !== 'completed'
    const said = isError ? (turn.error?.message ?? this.facts.unreached ?? this.#lastMessage) : this.#lastMessage
    return this.#turn.finish([...this.words.flush(), this.#turn.result(said, isError)])
  }

  /** Items of subagents have ids of their own threads, which may be those of other items. */
  #callId(threadId: string, itemId: string): string {
    return threadId === this.facts.sessionId ? itemId : `${threadId}/${itemId}`
  }
}
