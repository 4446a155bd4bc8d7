import type { DeviceRef, RunId } from '../../shared/lib/ids.ts'
import { createHash, type Hash } from 'node:crypto'
import type { Db } from '../db/open.ts'
import { listFrames, type Frame } from '../resources/runs/log-store.ts'
import { findRun } from '../resources/runs/store.ts'

/** Logs whose hashes are kept. */
const mostLogs = 10_000

/**
 * The running hash of each live log, kept while every frame of it passes through this process. Other logs are hashed
 * again from the stored frames. Nobody says here that a run was ended by another replica or a sweep, so the logs that grew
 * longest ago are dropped when there are too many.
 */
export class LogHashes {
  private readonly states = new Map<RunId, { fence: number; seq: number; hash: Hash }>()
  private readonly most: number

  constructor(most = mostLogs) {
    this.most = most
  }

  get count(): number {
    return this.states.size
  }

  add(frame: Frame): void {
    const state = this.states.get(frame.runId)
    // A state that is removed and set anew is the last one in their order.
    this.states.delete(frame.runId)
    const { runId, fence, lastSeq: seq, body } = frame
    if (frame.firstSeq === 1) this.keep({ runId, fence, seq }, createHash('sha256').update(body))
    else if (state && state.fence === fence && state.seq === frame.firstSeq - 1)
      this.keep({ runId, fence, seq }, state.hash.update(body))
  }

  private keep({ runId, fence, seq }: Log, hash: Hash): void {
    this.states.set(runId, { fence, seq, hash })
    if (this.states.size <= this.most) return
    const [oldest] = this.states.keys()
    if (oldest !== undefined) this.states.delete(oldest)
  }

  forget(runId: RunId): void {
    this.states.delete(runId)
  }

  /**
   * Learns the hashes of logs that end and did not pass through this process, so that `of` need not read them under the lock of their
   * workspace.
   */
  async catchUp(db: Db, endings: readonly LogEnding[]): Promise<void> {
    for (const { runId, fence, device, eventCount } of endings) {
      if (this.states.get(runId)?.fence === fence) continue
      const run = await findRun(db, runId)
      const isHeld = run?.fence === fence && run.device === device && run.endedAt === null
      if (!isHeld || run.eventSeq === 0 || run.eventSeq < eventCount) continue
      const log = { runId: run.id, fence: run.fence, seq: run.eventSeq }
      this.keep(log, await hashOf(db, log))
    }
  }

  /** Hex SHA-256 over the first `seq` events of the log. */
  async of(db: Db, log: Log): Promise<string> {
    const state = this.states.get(log.runId)
    if (state && state.fence === log.fence && state.seq === log.seq) return state.hash.copy().digest('hex')
    return (await hashOf(db, log)).digest('hex')
  }
}

/** The run, fence, device and count of events that a device names when a run ends. */
interface LogEnding {
  runId: RunId
  fence: number
  device: DeviceRef
  eventCount: number
}

interface Log {
  runId: RunId
  fence: number
  /** The number of its events. */
  seq: number
}

async function hashOf(db: Db, { runId, seq: last }: Log): Promise<Hash> {
  const hash = createHash('sha256')
  for (let seq = 0; seq < last;) {
    const frames = await listFrames(db, { runId, afterSeq: seq, limit: 16 })
    if (frames.length === 0) break
    for (const frame of frames) hash.update(frame.body)
    seq = frames.at(-1)?.lastSeq ?? last
  }
  return hash
}
