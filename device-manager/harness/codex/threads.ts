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

  readonly #totals = new Map<string, string>()

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

  /**
   * Whether a thread that is known used more than when it was asked last. codex tells the last usage again with news of the account's
   * limits, as when a limit is reached.
   */
  usedMore(threadId: string, total: unknown): boolean {
    if (total === undefined) return true
    const [before, now] = [this.#totals.get(threadId), JSON.stringify(total)]
    this.#totals.set(threadId, now)
    return before !== now
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
