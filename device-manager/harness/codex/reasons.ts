import type { Told } from './approvals.ts'
import { codexRequestIds, steerLine } from './lines.ts'

/**
 * codex's protocol has no words for a refusal: its model is told that a user rejected the call. So the reason is added to the turn first,
 * and the answer waits until codex has taken it; else the model might be asked on before it has the reason.
 *
 *     refused -- the reason is sent -> held -- codex has taken the reason, or takes none -> answered
 */
export class Reasons {
  readonly #held = new Map<number, string>()
  #count = 0

  /** Returns what is written for an answer: itself, or its reason first. */
  before(answer: string, told: Told): string {
    if (told === null || told.turnId === null) return answer
    const { threadId, turnId, reason } = told
    const id = codexRequestIds.firstReason - this.#count++
    this.#held.set(id, answer)
    return steerLine(id, { threadId, turnId, text: `From svc, about the call that was just rejected: ${reason}` })
  }

  /** Returns the answer that has waited for the reply to this request; null: none has. */
  taken(id: number): string | null {
    const answer = this.#held.get(id) ?? null
    this.#held.delete(id)
    return answer
  }
}
