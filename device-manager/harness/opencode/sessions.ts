import { forgetOldest } from '../parts/asked-calls.ts'
import { messageUpdated, sessionCreated } from './wire.ts'

/** Messages whose role is remembered; parts come right after their message. */
const maxMessages = 2_000
const maxSessions = 10_000
/** Written by opencode about the session, not by the agent. */
const aboutTheSession = new Set(['compaction', 'title', 'summary'])

/** The sessions of one run: its own, and those of its subagents. */
export class Sessions {
  #main: string | null = null
  readonly #known = new Set<string>()
  /** Session of a subagent -> the call that started it. */
  readonly #startedBy = new Map<string, string>()
  readonly #isAgents = new Map<string, boolean>()

  get main(): string | null {
    return this.#main
  }

  begin(sessionId: string): void {
    this.#main = sessionId
    this.#known.add(sessionId)
  }

  has(sessionId: string): boolean {
    return this.#known.has(sessionId)
  }

  created(properties: unknown): boolean {
    const parsed = sessionCreated.safeParse(properties)
    if (!parsed.success) return false
    const { id, parentID } = parsed.data.info
    if (parentID != null && this.#known.has(parentID) && this.#known.size < maxSessions) this.#known.add(id)
    return true
  }

  /** Remembers whose words a message holds. */
  message(properties: unknown): boolean {
    const parsed = messageUpdated.safeParse(properties)
    if (!parsed.success) return false
    const { id, role, agent } = parsed.data.info
    this.#isAgents.set(id, role === 'assistant' && !aboutTheSession.has(agent ?? ''))
    forgetOldest(this.#isAgents, maxMessages)
    return true
  }

  /** The words of a message are the agent's, or a subagent's. */
  isAgents(messageId: string): boolean {
    return this.#isAgents.get(messageId) === true
  }

  /** A call of this run has the session work. */
  startedBy(sessionId: string, toolCallId: string): void {
    if (sessionId === this.#main || this.#startedBy.size >= maxSessions) return
    this.#known.add(sessionId)
    this.#startedBy.set(sessionId, toolCallId)
  }

  parentOf(sessionId: string): { parentToolCallId?: string } {
    const parentToolCallId = this.#startedBy.get(sessionId)
    return parentToolCallId === undefined ? {} : { parentToolCallId }
  }

  /** Not a step of the agent's own work. */
  static isAboutTheSession(agent: string): boolean {
    return aboutTheSession.has(agent)
  }
}
