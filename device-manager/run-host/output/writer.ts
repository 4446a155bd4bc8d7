import type { ChangeSetResult } from '../../../shared/device/change-set.ts'
import type { EndReport } from '../../../shared/device/protocol.ts'
import { askedCallLimits } from '../../../shared/runs/asked-call.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import {
  SpoolDamagedError,
  SpoolFullError,
  SpoolOrderError,
  SpoolReplacedError,
  SpoolUnavailableError,
  type Spool,
} from '../../spool/spool.ts'
import { isEssential, nothingWritten, pendingEvent, toRows, type PendingEvent, type Written } from './event-lines.ts'
import { messageOf } from '../../log/host-log.ts'
import { gapOf, Overflow, type GapReason } from './overflow.ts'
import type { ReportOf, WriterOptions } from './writer-options.ts'

const batchRows = 100
const batchMs = 50
/** The pause after a write, in times of how long it took, up to `batchMs`: under load most of the time is left for reading. */
const restFactor = 4
const retryMinMs = 100
const retryMaxMs = 5_000

/**
 * Numbers events (their seq) and writes them to the spool: at once while there is little to write, in batches under load.
 * The writer has one owner and one thread. Every call to the spool is synchronous, so nothing interleaves within a flush.
 *
 *     taking    -- more than `unsentBytes` unacknowledged -->  dropping (events go to the overflow)
 *     dropping  -- `essentialBytes` more of must-keep events    -->  dropping these, too, but for a few asked calls
 *     taking    -- the spool refuses (full, busy, I/O)    -->  stuck: events are held, tried again with back-off
 *     stuck     -- more than `heldBytes` held             -->  stuck and dropping
 *     stuck     -- a try succeeds                         -->  taking, once the held ones are written
 *     dropping  -- room again (looked at each second)     -->  taking, after the gap and the tail were written
 *     any       -- rows of this run are lost              -->  broken: nothing is written but an ending without events
 */
export class EventWriter {
  readonly #options: WriterOptions
  #spool: Spool | null
  #queue: PendingEvent[] = []
  #queueBytes = 0
  #written: Written = nothingWritten()
  #unsentBytes = 0
  #overflow: Overflow | null = null
  /** Events that must be kept were dropped. */
  #isFlooded = false
  #asksKept = 0
  #stuckMs = 0
  #broken: string | null = null
  #isAtEnd = false
  #isEnding = false
  #restUntil = -Infinity
  #isSoon = false
  #cancelTimer: (() => void) | null = null
  readonly #abandoned = new AbortController()

  constructor(options: WriterOptions) {
    this.#options = options
    this.#spool = options.spool
  }

  get #isBroken(): boolean {
    return this.#broken !== null
  }

  get lastSeq(): number {
    return this.#written.lastSeq
  }

  emit(bodies: readonly RunEventBody[]): void {
    if (bodies.length === 0 || this.#isBroken || this.#isEnding) return
    const at = this.#options.world.now()
    for (const body of bodies) this.#take(pendingEvent(at, body))
    this.#schedule()
  }

  /** Keeps the tail, since the output is at its end; from here on nothing is dropped. */
  keepTail(): void {
    for (const event of this.#overflow?.take(this.#options.world.now()) ?? []) this.#enqueue(event)
    this.#overflow = null
    this.#isAtEnd = true
  }

  /**
   * Writes what is held, the `ended` event and the ending, in one transaction; waits for as long as the spool cannot take
   * even that. When room is short it gives up, in this order, the change-set and the output that is still held. null: abandoned.
   */
  async finish(ended: RunEventBody, changeSet: ChangeSetResult | null, reportOf: ReportOf): Promise<EndReport | null> {
    this.keepTail()
    this.#flush()
    this.#isEnding = true
    this.#cancelTimer?.()
    for (let waitMs = retryMinMs; ; waitMs = Math.min(waitMs * 2, retryMaxMs)) {
      const report = this.#tryEnding(ended, changeSet, reportOf)
      if (report || this.#abandoned.signal.aborted) return report
      await this.#options.world.sleep(waitMs, this.#abandoned.signal).catch(() => {})
    }
  }

  /** Tries the ending once more and does not wait for it: the spool will not come back. */
  abandon(): void {
    this.#abandoned.abort()
  }

  close(): void {
    this.#cancelTimer?.()
    this.#spool?.close()
    this.#spool = null
  }

  #take(event: PendingEvent): void {
    if (this.#overflow) {
      if (!this.#isKept(event)) return this.#overflow.push(event)
      for (const kept of this.#overflow.takeBefore(event.at)) this.#enqueue(kept)
    }
    this.#enqueue(event)
    if (this.#unsentBytes + this.#queueBytes > this.#options.limits.unsentBytes) this.#startDropping('unsent_limit')
    else if (this.#stuckMs > 0 && this.#queueBytes > this.#options.limits.heldBytes) this.#startDropping('spool_full')
  }

  /**
   * Events that must be kept are small; a harness that floods with them is held to a bound in memory and in the spool, which
   * all runs of the device share. The calls that a person is asked about are few, and without them nobody could answer.
   */
  #isKept(event: PendingEvent): boolean {
    const { heldBytes, unsentBytes, essentialBytes } = this.#options.limits
    if (!isEssential(event) || this.#queueBytes >= 2 * heldBytes) return false
    if (this.#unsentBytes + this.#queueBytes < unsentBytes + essentialBytes) return true
    if (event.body.kind === 'permission' && this.#asksKept++ < askedCallLimits.calls) return true
    if (!this.#isFlooded) this.#options.log('events_dropping', { runId: this.#options.key.runId })
    this.#isFlooded = true
    return false
  }

  #enqueue(event: PendingEvent): void {
    this.#queue.push(event)
    this.#queueBytes += event.heldBytes
  }

  #startDropping(reason: GapReason): void {
    if (this.#overflow || this.#isAtEnd) return
    this.#overflow = new Overflow(reason, this.#options.limits.ringBytes)
    this.#options.log('output_dropping', { runId: this.#options.key.runId, reason })
  }

  /** Writes after what else this turn of the event loop brings; soon after another write in batches, for `batchMs` at most. */
  #schedule(): void {
    if (this.#stuckMs > 0) return
    if (this.#queue.length >= batchRows) return this.#flush()
    if (this.#queue.length === 0) {
      if (this.#overflow) this.#arm(1_000)
      return
    }
    const waitMs = this.#restUntil - this.#options.world.monotonic()
    if (waitMs <= 0) this.#flushSoon()
    else this.#arm(Math.max(1, Math.min(waitMs, batchMs)))
  }

  #flushSoon(): void {
    if (this.#isSoon) return
    this.#isSoon = true
    setImmediate(() => {
      this.#isSoon = false
      if (this.#stuckMs === 0 && this.#queue.length > 0 && !this.#isEnding) this.#flush()
    })
  }

  #arm(ms: number): void {
    if (this.#cancelTimer || this.#isEnding) return
    this.#cancelTimer = this.#options.world.after(ms, () => {
      this.#cancelTimer = null
      this.#flush()
    })
  }

  #flush(): void {
    const before = this.lastSeq
    const startedAt = this.#options.world.monotonic()
    try {
      while (this.#queue.length > 0 && !this.#isBroken) this.#writeBatch()
      this.#stuckMs = 0
      this.#resume()
    } catch (error) {
      this.#stuckMs = Math.min(Math.max(this.#stuckMs * 2, retryMinMs), retryMaxMs)
      this.#options.log('spool_write_failed', {
        runId: this.#options.key.runId,
        error: messageOf(error),
        retryMs: this.#stuckMs,
      })
      this.#arm(this.#stuckMs)
    }
    const now = this.#options.world.monotonic()
    this.#restUntil = now + restFactor * (now - startedAt)
    if (this.lastSeq > before) this.#options.onSpooled(this.lastSeq)
    if (this.#stuckMs === 0 && (this.#overflow || this.#queue.length > 0)) this.#schedule()
  }

  /** Tries the first half of a batch that does not fit, down to one row: only when that does not fit is the spool full. */
  #writeBatch(most = batchRows): void {
    const batch = this.#queue.slice(0, most)
    const { rows, after } = toRows(this.#written, batch)
    try {
      this.#onSpool((spool) => {
        this.#unsentBytes = spool.append(this.#options.key, rows, after.stats).pendingBytes
      })
    } catch (error) {
      if (!(error instanceof SpoolFullError) || batch.length === 1) throw error
      return this.#writeBatch(Math.ceil(batch.length / 2))
    }
    if (this.#isBroken) return
    this.#written = after
    this.#queue = this.#queue.slice(batch.length)
    for (const event of batch) this.#queueBytes -= event.heldBytes
  }

  /** Writes the gap and the tail once half of the limit is free again, so that it does not flap. */
  #resume(): void {
    if (!this.#overflow || this.#isBroken) return
    this.#onSpool((spool) => {
      this.#unsentBytes = spool.stats(this.#options.key)?.pendingBytes ?? 0
    })
    if (this.#unsentBytes > this.#options.limits.unsentBytes / 2) return
    for (const event of this.#overflow.take(this.#options.world.now())) this.#enqueue(event)
    this.#overflow = null
  }

  /** Opens the file again when it was set aside, and looks whether this run is still whole in the new one. */
  #onSpool(work: (spool: Spool) => void): void {
    try {
      work((this.#spool ??= this.#open()))
    } catch (error) {
      if (error instanceof SpoolOrderError) return this.#break(messageOf(error))
      if (error instanceof SpoolDamagedError) this.#options.onDamaged(messageOf(error))
      if (!(error instanceof SpoolReplacedError)) throw error
      this.#letGo(error)
      const spool = (this.#spool = this.#open())
      const stats = spool.stats(this.#options.key)
      const left = stats?.lastSeq ?? 0
      if (left !== this.lastSeq || stats?.hasLostRows)
        return this.#break(`the spool was damaged: it holds ${left} of ${this.lastSeq} events`)
      work(spool)
    }
  }

  #open(): Spool {
    try {
      return this.#options.openSpool()
    } catch (error) {
      if (error instanceof SpoolUnavailableError) this.#options.onGone(messageOf(error))
      throw error
    }
  }

  #letGo(error: SpoolReplacedError): void {
    this.#options.onGone(messageOf(error))
    this.#spool?.close()
    this.#spool = null
  }

  #break(message: string): void {
    if (this.#isBroken) return
    this.#broken = message
    this.#queue = []
    this.#overflow = null
    this.#options.log('spool_broken', { runId: this.#options.key.runId, error: message })
    this.#options.onBroken(message)
  }

  #tryEnding(ended: RunEventBody, changeSet: ChangeSetResult | null, reportOf: ReportOf): EndReport | null {
    const at = this.#options.world.now()
    const noRoom: ChangeSetResult = {
      ok: false,
      code: 'too_large',
      message: 'The device had no room for the change-set.',
    }
    const attempts = [
      { events: this.#queue, changeSet },
      { events: this.#queue, changeSet: changeSet && noRoom },
      { events: this.#withoutOutput(at), changeSet: changeSet && noRoom },
    ]
    for (const attempt of attempts) {
      try {
        return this.#writeEnding([...attempt.events, pendingEvent(at, ended)], attempt.changeSet, reportOf)
      } catch (error) {
        this.#options.log('ending_write_failed', { runId: this.#options.key.runId, error: messageOf(error) })
        if (error instanceof SpoolReplacedError) this.#letGo(error)
        if (!(error instanceof SpoolFullError)) return null
      }
    }
    return null
  }

  #writeEnding(events: readonly PendingEvent[], changeSet: ChangeSetResult | null, reportOf: ReportOf): EndReport {
    let report: EndReport | null = null
    const { rows, after } = toRows(this.#written, events)
    if (!this.#isBroken) {
      const whole = reportOf(totalsOf(after))
      this.#onSpool((spool) => spool.end(this.#options.key, rows, { report: whole, changeSet }, { stats: after.stats }))
      report = whole
    }
    if (!this.#isBroken) {
      this.#written = after
      this.#options.onSpooled(this.lastSeq)
      return report!
    }
    return this.#endBroken(events.at(-1)!, changeSet, reportOf)
  }

  /** Writes what is left, and the last event; the spool numbers it above what the control plane has, and declares what is lost. */
  #endBroken(ended: PendingEvent, changeSet: ChangeSetResult | null, reportOf: ReportOf): EndReport {
    const { key } = this.#options
    const spool = (this.#spool ??= this.#open())
    const left = spool.stats(key)
    const seq = (left?.lastSeq ?? 0) + 1
    const told = reportOf({ ...totalsOf(this.#written), eventCount: seq })
    // Rows that were lost only now, after the harness had left: the run is not told as complete all the same.
    const lost = told.exitReason === 'completed' ? { exitReason: 'crashed' as const, message: this.#broken } : {}
    const report = { ...told, ...lost, logHash: '', gapBytes: left?.gapBytes ?? told.gapBytes }
    const data = { ...ended.body.data, ...lost }
    const line = Buffer.from(`${JSON.stringify({ seq, at: ended.at, kind: 'ended', data })}\n`)
    const bytes = this.#unsentBytes - (left?.pendingBytes ?? 0)
    spool.end(
      key,
      [{ seq, line }],
      { report, changeSet },
      { lost: { knownSeq: this.lastSeq, bytes, certainty: 'exact' } },
    )
    return report
  }

  /** Returns what is held, with its output counted as lost. */
  #withoutOutput(at: number): PendingEvent[] {
    const lost = this.#queue.filter((event) => !isEssential(event)).reduce((sum, event) => sum + event.outputBytes, 0)
    return [...this.#queue.filter(isEssential), ...gapOf(at, lost, 'spool_full')]
  }
}

function totalsOf({ lastSeq, stats, hash }: Written) {
  const { gapBytes, usage, sessionId, toolCalls, approvals } = stats
  return {
    eventCount: lastSeq,
    logHash: hash.copy().digest('hex'),
    gapBytes,
    usage,
    sessionId,
    toolCalls,
    ...(approvals.length > 0 && { approvals: [...approvals] }),
  }
}
