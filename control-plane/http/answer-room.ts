import { ApiError } from '../../shared/api/errors.ts'
import type { BodyRoom, Release, RoomOwner } from './body-room.ts'

/** An answer that is smaller takes no room: most answers are. */
const smallBytes = 64 * 1024
const nothing: Release = () => undefined

/**
 * Room in memory for what is read for one answer. A reader that does not take its answer keeps what was read for it, so the answers
 * and streams of each caller, and of all, have a bound of bytes; whoever finds no room waits.
 */
export class AnswerRoom {
  private readonly room: BodyRoom
  private readonly owner: RoomOwner
  private readonly gone: () => AbortSignal

  /** `gone`: aborted when the answer is sent, or its reader is gone. */
  constructor(room: BodyRoom, owner: RoomOwner, gone: () => AbortSignal) {
    this.room = room
    this.owner = owner
    this.gone = gone
  }

  /** Takes room until the answer is sent. Fails with `rate_limit_exceeded`. */
  async hold(bytes: number): Promise<void> {
    if (bytes <= smallBytes) return
    const gone = this.gone()
    const release = await this.room.take(bytes, this.owner, gone)
    if (gone.aborted) return release()
    gone.addEventListener('abort', release, { once: true })
    // The rows that are read may take long to parse and to write, so other requests come in between.
    await this.room.yieldToLoop()
  }

  /** Takes room for a part of a stream, however long that takes; null once the reader is gone. */
  async takeFor(bytes: number, sleep: (ms: number) => Promise<void>): Promise<Release | null> {
    const gone = this.gone()
    while (!gone.aborted) {
      if (bytes <= smallBytes) return nothing
      try {
        const release = await this.room.take(bytes, this.owner, gone)
        await this.room.yieldToLoop()
        return release
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (!gone.aborted) await sleep(againMs)
      }
    }
    return null
  }
}
const againMs = 1_000
