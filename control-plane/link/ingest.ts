import { createHash, type Hash } from 'node:crypto'
import type { Knex } from 'knex'
import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import type { EndReport, EventsHeader, ServerMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import { statusOfExitReason } from '../../shared/runs/exit-reasons.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import { withCost } from '../catalog/price.ts'
import type { Tx } from '../db/open.ts'
import { finishRun } from '../dispatch/end-run.ts'
import type { Log } from '../log.ts'
import {
  advanceLog,
  findFrame,
  insertEvidence,
  insertFrames,
  listFrames,
  recordProgress,
  replaceChangeSet,
  type Frame,
} from '../resources/runs/log-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import type { Bus } from './bus.ts'
import type { IngestCounters } from './counters.ts'
import { afterLines, firstLines } from './log-lines.ts'
import { placeFrame } from './place-frame.ts'

/**
 * Stores what devices send about their runs: frames of events, last change-sets, endings. All that arrived in one tick
 * goes into one transaction, in order of arrival, and is answered after the commit. Nothing is answered when the commit
 * failed; the same work is then tried again, and after a few failures the links are closed so that devices send again
 * after their reconnect delay.
 *
 * The fence is checked in the same transaction as the write (I4 of the fault matrix); a second frame with the same
 * numbers is compared with what is stored and never replaces it.
 */

interface From {
  /** Durable id of the sending device. */
  device: string
  send(message: ServerMessage): void
  giveUp(): void
}
export type IngestItem = From &
  (
    | { kind: 'events'; header: EventsHeader; body: Buffer }
    | { kind: 'change_set'; runId: string; fence: number; result: ChangeSetResult }
    | { kind: 'ended'; runId: string; fence: number; report: EndReport }
  )

export interface IngestOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  counters: IngestCounters
  /** Prices what a harness does not. */
  catalog: ModelCatalog
  onEnded(run: RunRow): void
}

const batchItems = 256
const batchBytes = 16 * 1024 * 1024
const attempts = 4

/** State of one transaction: rows as they are after what it did so far, and what to say once it is committed. */
interface Batch {
  tx: Tx
  runs: Map<string, RunRow | null>
  frames: Map<string, { run: RunRow; from: number; frames: Frame[] }>
  replies: (() => void)[]
  ended: RunRow[]
  touched: Set<string>
}

export class Ingest {
  private readonly options: IngestOptions
  private queue: IngestItem[] = []
  private working: Promise<void> | null = null
  /** Hash of a live log so far, while every frame of it went through this process. */
  private readonly hashes = new Map<string, { fence: number; seq: number; hash: Hash }>()

  constructor(options: IngestOptions) {
    this.options = options
  }

  push(item: IngestItem): void {
    this.queue.push(item)
    this.working ??= this.drain().finally(() => {
      this.working = null
      if (this.queue.length > 0) this.working = this.drain()
    })
  }

  /** Resolves when all that was pushed is stored and answered. */
  async idle(): Promise<void> {
    while (this.working) await this.working
  }

  private async drain(): Promise<void> {
    // Leaves the tick, so that all frames the sockets delivered together share a commit.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.queue.length > 0) {
      const items = this.take()
      await this.store(items)
    }
  }

  private take(): IngestItem[] {
    let bytes = 0
    let count = 0
    for (const item of this.queue) {
      bytes += item.kind === 'events' ? item.body.length : 1024
      if (count > 0 && (count >= batchItems || bytes > batchBytes)) break
      count++
    }
    return this.queue.splice(0, count)
  }

  private async store(items: IngestItem[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        const batch = await this.options.root.transaction(async (tx) => this.apply(tx, items))
        for (const runId of batch.touched) this.options.bus.signal(`run:${runId}`)
        for (const reply of batch.replies) reply()
        for (const run of batch.ended) {
          this.hashes.delete(run.id)
          this.options.onEnded(run)
        }
        if (batch.ended.length > 0) this.options.bus.poke()
        return
      } catch (error) {
        for (const item of items) this.hashes.delete(runIdOf(item))
        this.options.log.error({ err: error, attempt, items: items.length }, 'events were not stored')
        if (attempt >= attempts) {
          for (const item of items) item.giveUp()
          return
        }
        await this.options.world.sleep(50 * 4 ** attempt)
      }
    }
  }

  private async apply(tx: Tx, items: IngestItem[]): Promise<Batch> {
    const batch: Batch = { tx, runs: new Map(), frames: new Map(), replies: [], ended: [], touched: new Set() }
    for (const item of items) {
      if (item.kind === 'events') await this.applyEvents(batch, item)
      else if (item.kind === 'change_set') await this.applyChangeSet(batch, item)
      else await this.applyEnding(batch, item)
    }
    for (const runId of batch.frames.keys()) await this.writeFrames(batch, runId)
    return batch
  }

  private async runOf(batch: Batch, runId: string): Promise<RunRow | null> {
    const known = batch.runs.get(runId)
    if (known !== undefined) return known
    const run = await findRun(batch.tx, runId)
    batch.runs.set(runId, run)
    return run
  }

  private async applyEvents(batch: Batch, item: IngestItem & { kind: 'events' }): Promise<void> {
    const { header, body } = item
    const run = await this.runOf(batch, header.runId)
    if (sha256(body) !== header.sha256) {
      this.options.counters.integrity(header.runId, 'a frame does not have the hash its header says')
      return this.acknowledge(batch, item, run?.eventSeq ?? 0)
    }
    const verdict = placeFrame(run, header, item.device)
    if (verdict.kind === 'refused') return this.refuse(batch, item, { body, reason: verdict.reason })
    if (!run) return
    if (verdict.kind === 'duplicate') {
      await this.compare(batch, { run, header, body, until: header.lastSeq })
      return this.acknowledge(batch, item, run.eventSeq)
    }
    if (verdict.kind === 'gap') return this.acknowledge(batch, item, run.eventSeq)
    const known = verdict.from - header.firstSeq
    if (known > 0) await this.compare(batch, { run, header, body, until: verdict.from - 1 })
    const fresh = known > 0 ? Buffer.from(afterLines(body, known)) : body
    this.addFrame(batch, run, {
      runId: run.id,
      fence: header.fence,
      firstSeq: verdict.from,
      lastSeq: header.lastSeq,
      sha256: known > 0 ? sha256(fresh) : header.sha256,
      body: fresh,
      receivedAt: this.options.world.now(),
    })
    if (header.usage || header.sessionId) {
      const usage = header.usage && withCost(header.usage, run.modelId, this.options.catalog)
      await recordProgress(batch.tx, run.id, { usage, sessionId: header.sessionId })
      // The ending of this very batch goes by it when it says no usage itself.
      if (usage) batch.runs.set(run.id, { ...(batch.runs.get(run.id) ?? run), usage, costUsd: usage.costUsd ?? null })
    }
    this.acknowledge(batch, item, header.lastSeq)
  }

  private addFrame(batch: Batch, run: RunRow, frame: Frame): void {
    const pending = batch.frames.get(run.id) ?? { run, from: run.eventSeq, frames: [] }
    pending.frames.push(frame)
    batch.frames.set(run.id, pending)
    batch.runs.set(run.id, { ...run, eventSeq: frame.lastSeq })
    batch.touched.add(run.id)
    this.addToHash(frame)
  }

  private addToHash(frame: Frame): void {
    const state = this.hashes.get(frame.runId)
    if (frame.firstSeq === 1) {
      this.hashes.set(frame.runId, {
        fence: frame.fence,
        seq: frame.lastSeq,
        hash: createHash('sha256').update(frame.body),
      })
    } else if (state && state.fence === frame.fence && state.seq === frame.firstSeq - 1) {
      state.hash.update(frame.body)
      state.seq = frame.lastSeq
    } else this.hashes.delete(frame.runId)
  }

  private async writeFrames(batch: Batch, runId: string): Promise<void> {
    const pending = batch.frames.get(runId)
    if (!pending) return
    batch.frames.delete(runId)
    const last = pending.frames.at(-1)
    if (!last) return
    const bytes = pending.frames.reduce((sum, frame) => sum + frame.body.length, 0)
    const step = { runId, fence: last.fence, fromSeq: pending.from, toSeq: last.lastSeq, bytes }
    // The run changed between the read and now (ended, or another socket of the device was first): begin again.
    if (!(await advanceLog(batch.tx, step))) throw new Error('the run changed while its events were stored')
    await insertFrames(batch.tx, pending.frames)
    this.options.counters.stored(last.lastSeq - pending.from, bytes)
  }

  /** What is stored stays; other content under the same numbers is an alarm (fault matrix, row 31). */
  private async compare(
    batch: Batch,
    range: { run: RunRow; header: EventsHeader; body: Buffer; until: number },
  ): Promise<void> {
    await this.writeFrames(batch, range.run.id)
    const { header, run } = range
    let sent: Uint8Array = firstLines(range.body, range.until - header.firstSeq + 1)
    let seq = header.firstSeq
    while (seq <= range.until) {
      const frame = await findFrame(batch.tx, run.id, seq)
      if (!frame) return
      const stored = afterLines(frame.body, seq - frame.firstSeq)
      const lines = Math.min(frame.lastSeq, range.until) - seq + 1
      const [a, b] = [firstLines(stored, lines), firstLines(sent, lines)]
      if (Buffer.compare(a, b) !== 0) {
        this.options.counters.integrity(run.id, `events from ${seq} were sent again with other content`)
        await this.keepEvidence(batch, { run, header, body: range.body, reason: 'conflicting_content' })
        return
      }
      sent = afterLines(sent, lines)
      seq += lines
    }
  }

  private async applyChangeSet(batch: Batch, item: IngestItem & { kind: 'change_set' }): Promise<void> {
    const run = await this.runOf(batch, item.runId)
    if (!run || run.fence !== item.fence || run.device !== item.device) {
      this.options.counters.refused('stale_fence')
      return
    }
    await replaceChangeSet(batch.tx, {
      runId: run.id,
      fence: item.fence,
      result: item.result,
      at: this.options.world.now(),
    })
  }

  private async applyEnding(batch: Batch, item: IngestItem & { kind: 'ended' }): Promise<void> {
    const { report, runId, fence } = item
    await this.writeFrames(batch, runId)
    const run = await this.runOf(batch, runId)
    const closed = () => item.send({ type: 'run.closed', runId, fence })
    if (!run || run.endedAt !== null || run.fence !== fence || run.device !== item.device) {
      // The run has its ending (perhaps this very one, whose answer was lost), or belongs to a later lease.
      if (run && (run.fence !== fence || run.exitReason !== report.exitReason)) {
        const body = Buffer.from(JSON.stringify(report))
        await this.keepEvidence(batch, {
          run,
          header: { ...item, firstSeq: null, lastSeq: null },
          body,
          reason: 'late_ending',
        })
        this.options.counters.refused(run.endedAt !== null ? 'run_ended' : 'stale_fence')
      }
      batch.replies.push(closed)
      return
    }
    if (report.eventCount > run.eventSeq) return this.acknowledge(batch, item, run.eventSeq)
    const at = this.options.world.now()
    const failed = statusOfExitReason(report.exitReason) === 'failed'
    const finished = await finishRun(batch.tx, run, {
      fence,
      exitReason: report.exitReason,
      errorCode: failed ? report.exitReason : null,
      errorMessage: report.message,
      at,
      usage: report.usage ? withCost(report.usage, run.modelId, this.options.catalog) : run.usage,
      toolCallCount: report.toolCallCount,
      sessionId: report.sessionId ?? run.sessionId,
      gapBytes: report.gapBytes,
      logVerified: await this.verify(batch, run, report),
      world: this.options.world,
    })
    if (!finished) throw new Error('the run changed while its ending was stored')
    batch.runs.set(runId, { ...run, endedAt: at, exitReason: report.exitReason })
    batch.ended.push(run)
    batch.touched.add(runId)
    batch.replies.push(closed)
  }

  /** Whether the stored log is the one the device hashed; null when the device could not tell. */
  private async verify(batch: Batch, run: RunRow, report: EndReport): Promise<boolean | null> {
    if (report.logHash === '') return null
    const state = this.hashes.get(run.id)
    let hash: Hash
    if (state && state.fence === run.fence && state.seq === run.eventSeq) hash = state.hash.copy()
    else {
      hash = createHash('sha256')
      for (let seq = 0; seq < run.eventSeq;) {
        const frames = await listFrames(batch.tx, { runId: run.id, afterSeq: seq, limit: 16 })
        if (frames.length === 0) break
        for (const frame of frames) hash.update(frame.body)
        seq = frames.at(-1)?.lastSeq ?? run.eventSeq
      }
    }
    const verified = hash.digest('hex') === report.logHash
    if (!verified) this.options.counters.integrity(run.id, 'the stored log does not have the hash its device reported')
    return verified
  }

  private acknowledge(batch: Batch, item: IngestItem, seq: number): void {
    const runId = runIdOf(item)
    const fence = item.kind === 'events' ? item.header.fence : item.fence
    batch.replies.push(() => item.send({ type: 'ack', runId, fence, seq }))
  }

  private async refuse(
    batch: Batch,
    item: IngestItem & { kind: 'events' },
    why: { body: Buffer; reason: 'stale_fence' | 'run_ended' | 'run_unknown' },
  ): Promise<void> {
    const { runId, fence } = item.header
    const run = await this.runOf(batch, runId)
    if (run && (run.device === item.device || why.reason === 'stale_fence'))
      await this.keepEvidence(batch, { run, header: item.header, body: why.body, reason: why.reason })
    this.options.counters.refused(why.reason)
    batch.replies.push(() => item.send({ type: 'run.refused', runId, fence, reason: why.reason }))
  }

  private async keepEvidence(
    batch: Batch,
    input: {
      run: RunRow
      header: { fence: number; firstSeq: number | null; lastSeq: number | null }
      body: Buffer
      reason: string
    },
  ): Promise<void> {
    await insertEvidence(batch.tx, {
      id: this.options.world.uuid(),
      runId: input.run.id,
      fence: input.header.fence,
      firstSeq: input.header.firstSeq,
      lastSeq: input.header.lastSeq,
      device: input.run.device ?? '',
      reason: input.reason,
      body: input.body,
      receivedAt: this.options.world.now(),
    })
  }
}

const runIdOf = (item: IngestItem): string => (item.kind === 'events' ? item.header.runId : item.runId)
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
