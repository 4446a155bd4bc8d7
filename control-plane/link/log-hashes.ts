import { createHash, type Hash } from 'node:crypto'
import type { Db } from '../db/open.ts'
import { listFrames, type Frame } from '../resources/runs/log-store.ts'

/** Logs whose hashes are kept. */
const mostLogs = 10_000

/**
 * The running hash of each live log, kept while every frame of it passes through this process. Other logs are hashed
 * again from the stored frames. Nobody says here that a run was ended by another replica or a sweep, so the logs that grew
 * longest ago are dropped when there are too many.
 */
export class LogHashes {
  private readonly states = new Map<string, { fence: number; seq: number; hash: Hash }>()
  private readonly most: number

  constructor(most = mostLogs) {
    this.most = most
  }

  get count(): number {
    return this.states.size
  }

  add(frame: Frame): void {
    const state = this.states.get(frame.runId)
    // Set anew, it is the last one in their order.
    this.states.delete(frame.runId)
    if (frame.firstSeq === 1) this.keep(frame, createHash('sha256'))
    else if (state && state.fence === frame.fence && state.seq === frame.firstSeq - 1) this.keep(frame, state.hash)
  }

  private keep({ runId, fence, lastSeq, body }: Frame, hash: Hash): void {
    this.states.set(runId, { fence, seq: lastSeq, hash: hash.update(body) })
    if (this.states.size <= this.most) return
    const [oldest] = this.states.keys()
    if (oldest !== undefined) this.states.delete(oldest)
  }

  forget(runId: string): void {
    this.states.delete(runId)
  }

  /** Hex SHA-256 over the first `seq` events of the log. */
  async of(db: Db, log: { runId: string; fence: number; seq: number }): Promise<string> {
    const state = this.states.get(log.runId)
    if (state && state.fence === log.fence && state.seq === log.seq) return state.hash.copy().digest('hex')
    const hash = createHash('sha256')
    for (let seq = 0; seq < log.seq;) {
      const frames = await listFrames(db, { runId: log.runId, afterSeq: seq, limit: 16 })
      if (frames.length === 0) break
      for (const frame of frames) hash.update(frame.body)
      seq = frames.at(-1)?.lastSeq ?? log.seq
    }
    return hash.digest('hex')
  }
}
