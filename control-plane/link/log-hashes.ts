import { createHash, type Hash } from 'node:crypto'
import type { Db } from '../db/open.ts'
import { listFrames, type Frame } from '../resources/runs/log-store.ts'

/**
 * The running hash of each live log, kept while every frame of it passes through this process. Other logs are hashed
 * again from the stored frames.
 */
export class LogHashes {
  private readonly states = new Map<string, { fence: number; seq: number; hash: Hash }>()

  add(frame: Frame): void {
    const state = this.states.get(frame.runId)
    if (frame.firstSeq === 1) {
      const hash = createHash('sha256').update(frame.body)
      this.states.set(frame.runId, { fence: frame.fence, seq: frame.lastSeq, hash })
    } else if (state && state.fence === frame.fence && state.seq === frame.firstSeq - 1) {
      state.hash.update(frame.body)
      state.seq = frame.lastSeq
    } else this.states.delete(frame.runId)
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
