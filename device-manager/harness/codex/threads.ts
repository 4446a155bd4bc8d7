import { agentItem, type Item } from './wire.ts'

/** Subagents of a run that are told apart. */
const maxThreads = 1_000

/**
 * The threads of one run: its own, and those of its subagents, which the call that begins or wakes one names before anything
 * comes of it. No other thread speaks for the run.
 */
export class Threads {
  /** Thread -> the call that named it; null: the run's own, or none did. */
  readonly #calls = new Map<string, string | null>()

  begin(threadId: string): void {
    this.#calls.set(threadId, null)
  }

  has(threadId: string): boolean {
    return this.#calls.has(threadId)
  }

  /** An item of a thread may name those of subagents. */
  note(threadId: string, { item, toolCallId }: { item: Item; toolCallId: string }): void {
    const parsed = agentItem.safeParse(item)
    if (!parsed.success || !this.has(threadId)) return
    const named = parsed.data
    const [threads, call] =
      named.type === 'collabAgentToolCall' ? [named.receiverThreadIds, toolCallId] : [[named.agentThreadId], null]
    for (const each of threads) if (!this.has(each) && this.#calls.size < maxThreads) this.#calls.set(each, call)
  }

  parentOf(threadId: string): { parentToolCallId?: string } {
    const parentToolCallId = this.#calls.get(threadId) ?? null
    return parentToolCallId === null ? {} : { parentToolCallId }
  }
}

/** The thread that a request of codex is about; empty where it names none. */
export function threadOf({ params }: { params?: unknown }): string {
  const threadId = typeof params === 'object' && params !== null && 'threadId' in params ? params.threadId : null
  return typeof threadId === 'string' ? threadId : ''
}
