import type { RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { toTimestamp } from '../../shared/api/ids.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { AskedCall } from '../../shared/runs/asked-call.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import { withCost } from '../catalog/price.ts'
import type { Askable, Tx } from '../db/open.ts'
import { finishRuns, type Ending, type RunToEnd } from '../run/endings/end-run.ts'
import { raiseToolApproval } from '../resources/approvals/steps/raise.ts'
import { recordLimitsUsed } from '../run/endings/limits-used.ts'
import { openedBy } from '../run/endings/provider-failure.ts'
import { recordWall } from '../resources/runs/details-store.ts'
import { spansAt } from '../resources/runs/timings.ts'
import { findFrame, insertFrames, replaceChangeSet, hasOverlong, type Frame } from '../resources/runs/log-store.ts'
import { changeRun, forgetHarnessSession } from '../run/change-store.ts'
import { findRun, listGivenRuns, type RunRow } from '../resources/runs/store.ts'
import type { IngestCounters } from './counters.ts'
import type { IngestItem } from './ingest-item.ts'
import type { LogHashes } from './log-hashes.ts'
import { afterLines, firstLines, withinBounds } from '../resources/runs/log-lines.ts'
import { placeFrame } from './place-frame.ts'
import { keepEvidence } from './evidence.ts'

export interface BatchOptions {
  world: World
  counters: IngestCounters
  /** Prices usage that the harness does not price. */
  catalog: ModelCatalog
  hashes: LogHashes
}

type Ended = IngestItem & { kind: 'ended' }

/** Another writer changed the run first. Work that is repeated finds the run as it is now. */
export class RunChangedError extends Error {
  override readonly name = 'RunChangedError'
}

/** Items that arrived together, stored in one transaction, with the replies and effects for after its commit. */
export class IngestBatch {
  readonly replies: (() => void)[] = []
  /** Counter updates for after the commit. */
  readonly counted: (() => void)[] = []
  readonly ended: RunRow[] = []
  /** Runs with newly stored events. */
  readonly touched = new Set<string>()
  private readonly tx: Tx
  private readonly options: BatchOptions
  /** Rows including the changes of this batch so far. */
  private readonly runs: Map<RunId, RunRow | null>
  private readonly frames = new Map<RunId, { run: RunRow; from: number; frames: Frame[] }>()
  /** Runs that end together, in the order of their reports. */
  private ending = new Map<RunId, RunToEnd & { item: Ended }>()

  /** `runs`: those that were read already (see `readRuns`); the batch goes on with this map. */
  constructor(tx: Tx, { runs, ...options }: BatchOptions & { runs: Map<RunId, RunRow | null> }) {
    this.tx = tx
    this.options = options
    this.runs = runs
  }

  async apply(items: readonly IngestItem[]): Promise<void> {
    for (const item of items) {
      // What comes after the ending of its run finds that ended; so does what decides more find all before it.
      if (this.ending.has(runIdOf(item)) || decidesMore(item)) await this.endRuns()
      if (item.kind === 'events') await this.applyEvents(item)
      else if (item.kind === 'change_set') await this.applyChangeSet(item)
      else await this.applyEnding(item)
      if (decidesMore(item)) await this.endRuns()
    }
    await this.endRuns()
    for (const runId of this.frames.keys()) await this.writeFrames(runId)
  }

  /** Returns null for a run of another workspace, too: the sender must not learn of it. */
  private async runOf(item: IngestItem): Promise<RunRow | null> {
    const runId = runIdOf(item)
    const known = this.runs.get(runId)
    const run = known === undefined ? await findRun(this.tx, runId) : known
    this.runs.set(runId, run)
    return run?.workspaceId === item.workspaceId ? run : null
  }

  private async applyEvents(item: IngestItem & { kind: 'events' }): Promise<void> {
    const { header, body: sent } = item
    const run = await this.runOf(item)
    if (sha256(sent) !== header.sha256) {
      this.alarm(header.runId, 'a frame does not have the hash its header says')
      return this.acknowledge(item, run?.eventSeq ?? 0)
    }
    // The text is cut before anything else is done with it, as if the device had declared what is too long.
    const body = withinBounds(sent, header)
    const verdict = placeFrame(run, header, item.device)
    if (verdict.kind === 'refused') return this.refuse(item, { body, reason: verdict.reason })
    if (!run) return
    if (verdict.kind === 'duplicate') {
      await this.compare({ run, item, body, until: header.lastSeq })
      return this.acknowledge(item, run.eventSeq)
    }
    if (verdict.kind === 'gap') return this.acknowledge(item, run.eventSeq)
    const known = verdict.from - header.firstSeq
    if (known > 0) await this.compare({ run, item, body, until: verdict.from - 1 })
    const fresh = known > 0 ? Buffer.from(afterLines(body, known)) : body
    this.addFrame(run, {
      runId: run.id,
      fence: header.fence,
      firstSeq: verdict.from,
      lastSeq: header.lastSeq,
      sha256: fresh === sent ? header.sha256 : sha256(fresh),
      body: fresh,
      receivedAt: this.options.world.now(),
    })
    if (header.usage || header.sessionId) {
      const usage = header.usage && withCost(header.usage, run.modelId, this.options.catalog)
      await changeRun(this.tx, run.id, { type: 'progress_told', usage, sessionId: header.sessionId })
      // An ending in the same batch uses this when it has no usage of its own.
      if (usage) this.runs.set(run.id, { ...(this.runs.get(run.id) ?? run), usage, costUsd: usage.costUsd ?? null })
    }
    await this.raiseApprovals(run, header.approvals)
    this.acknowledge(item, header.lastSeq)
  }

  /** Devices report each call at least once; a known call raises nothing. */
  private async raiseApprovals(run: RunRow, calls: readonly AskedCall[] = []): Promise<void> {
    for (const call of calls) await raiseToolApproval(this.tx, run, call, this.options.world)
  }

  private addFrame(run: RunRow, frame: Frame): void {
    const pending = this.frames.get(run.id) ?? { run, from: run.eventSeq, frames: [] }
    pending.frames.push(frame)
    this.frames.set(run.id, pending)
    this.runs.set(run.id, { ...run, eventSeq: frame.lastSeq })
    this.touched.add(run.id)
    this.options.hashes.add(frame)
  }

  private async writeFrames(runId: RunId): Promise<void> {
    const pending = this.frames.get(runId)
    if (!pending) return
    this.frames.delete(runId)
    const last = pending.frames.at(-1)
    if (!last) return
    const bytes = pending.frames.reduce((sum, frame) => sum + frame.body.length, 0)
    const step = { fence: last.fence, fromSeq: pending.from, toSeq: last.lastSeq, bytes }
    // The run changed since it was read (it ended, or another socket of the device was first), so the batch starts
    // again.
    if (!(await changeRun(this.tx, runId, { type: 'events_stored', ...step })))
      throw new RunChangedError('the run changed while its events were stored')
    await insertFrames(this.tx, pending.frames)
    this.counted.push(() => this.options.counters.stored(last.lastSeq - pending.from, bytes))
  }

  /** Compares events that are stored already, which stay. Other content under the same numbers raises an alarm. */
  private async compare(range: {
    run: RunRow
    item: IngestItem & { kind: 'events' }
    body: Buffer
    until: number
  }): Promise<void> {
    await this.writeFrames(range.run.id)
    const { run, item, body } = range
    const { header } = item
    let sent: Uint8Array = firstLines(body, range.until - header.firstSeq + 1)
    let seq = header.firstSeq
    while (seq <= range.until) {
      const frame = await findFrame(this.tx, run.id, seq)
      if (!frame) return
      const stored = afterLines(frame.body, seq - frame.firstSeq)
      const lines = Math.min(frame.lastSeq, range.until) - seq + 1
      const [a, b] = [firstLines(stored, lines), firstLines(sent, lines)]
      if (Buffer.compare(a, b) !== 0) {
        this.alarm(run.id, `events from ${seq} were sent again with other content`)
        await this.keep(run, { item, header, body, reason: 'conflicting_content' })
        return
      }
      sent = afterLines(sent, lines)
      seq += lines
    }
  }

  private async applyChangeSet(item: IngestItem & { kind: 'change_set' }): Promise<void> {
    const run = await this.runOf(item)
    if (!run || run.fence !== item.fence || run.device !== item.device) {
      this.counted.push(() => this.options.counters.refused('stale_fence'))
      return
    }
    const { fence, result } = item
    await replaceChangeSet(this.tx, { runId: run.id, fence, result, at: this.options.world.now() })
  }

  private async applyEnding(item: Ended): Promise<void> {
    const { report, runId, fence, endedAgoMs } = item
    await this.writeFrames(runId)
    const run = await this.runOf(item)
    const isHeld = run?.fence === fence && run.device === item.device && run.leaseState === 'claimed'
    if (!run || run.endedAt !== null || !isHeld) {
      // The run has ended already (perhaps by this very report, whose answer was lost), belongs to a later lease, or was
      // offered to the device, which has not taken it.
      if (run && (run.fence !== fence || !isSameEnding(run, report))) {
        const header = { fence, firstSeq: null, lastSeq: null }
        await this.keep(run, { item, header, body: Buffer.from(JSON.stringify(report)), reason: 'late_ending' })
        this.counted.push(() => this.options.counters.refused(run.endedAt !== null ? 'run_ended' : 'stale_fence'))
      }
      return this.close(item)
    }
    if (report.eventCount > run.eventSeq) return this.acknowledge(item, run.eventSeq)
    await this.raiseApprovals(run, report.approvals)
    const [first] = this.ending.values()
    const at = first?.ending.at ?? this.options.world.now()
    const { lostSessionId } = report
    const { exitReason, message, providerFailed } = await this.judged(run, { report, at })
    const ending: Ending = {
      type: 'ended_by_device',
      fence,
      exitReason,
      errorMessage: message,
      at,
      endedAgoMs,
      usage: report.usage ? withCost(report.usage, run.modelId, this.options.catalog) : run.usage,
      toolCallCount: report.toolCallCount,
      sessionId: lostSessionId === undefined ? (report.sessionId ?? run.sessionId) : null,
      gapBytes: report.gapBytes,
      limitResetsAt: report.exitReason === 'rate_limited' ? (report.limitResetsAt ?? null) : null,
      providerFailed,
      harnessVersion: report.harnessVersion,
      ...(report.spans && { spans: spansAt(report.spans, { at, endedAgoMs }) }),
      logVerified: await this.verify(run, report),
      outOfMemory: report.outOfMemory === true,
      sessionLost: lostSessionId !== undefined && exitReason === 'harness_start_failed',
      world: this.options.world,
    }
    this.ending.set(runId, { run, ending, item })
  }

  /** Writes the endings that were collected. */
  private async endRuns(): Promise<void> {
    const [first, ...others] = this.ending.values()
    if (first === undefined) return
    this.ending = new Map()
    const ends = [first, ...others] as const
    const ended = await finishRuns(this.tx, ends)
    for (const { run, ending, item } of ends) {
      const { wall, lostSessionId, limitsUsed } = item.report
      if (wall !== undefined) await recordWall(this.tx, run.id, wall)
      if (!ended.has(run.id)) throw new RunChangedError('the run changed while its ending was stored')
      if (lostSessionId !== undefined)
        await forgetHarnessSession(this.tx, { agentRef: run.agentRef, sessionId: lostSessionId })
      const { at, exitReason, providerFailed = false } = ending
      if (limitsUsed !== undefined) await recordLimitsUsed(this.tx, run, { told: limitsUsed, at })
      this.runs.set(run.id, { ...run, endedAt: at, exitReason, providerFailed })
      this.ended.push(run)
      this.touched.add(run.id)
      this.close(item)
    }
  }

  private close(item: Ended): void {
    const { runId, fence } = item
    this.replies.push(() => item.send({ type: 'run.closed', runId, fence }))
  }

  /** A failure of the provider that opens its breaker ends the run as `circuit_breaker`. */
  private async judged(run: RunRow, { report, at }: { report: EndReport; at: number }) {
    const { exitReason, message } = report
    const providerFailed = exitReason === 'error' && report.providerFailed === true
    const opened = providerFailed ? await openedBy(this.tx, run, at) : null
    if (opened === null) return { exitReason, message, providerFailed }
    const held = `The provider failed several runs in a row on this device. Others wait until ${toTimestamp(opened.openUntil)}.`
    return {
      exitReason: 'circuit_breaker' as const,
      message: [message, held].filter(Boolean).join(' '),
      providerFailed,
    }
  }

  /** Tells whether the stored log has the hash that the device reported; null when the device, or the server, could not compute it. */
  private async verify(run: RunRow, report: EndReport): Promise<boolean | null> {
    if (report.logHash === '') return null
    const log = { runId: run.id, fence: run.fence, seq: run.eventSeq }
    const verified = (await this.options.hashes.of(this.tx, log)) === report.logHash
    // A text that a device of an earlier release sent too long was cut, so it cannot be hashed.
    if (!verified && (await hasOverlong(this.tx, log))) return null
    if (!verified) this.alarm(run.id, 'the stored log does not have the hash its device reported')
    return verified
  }

  private alarm(runId: RunId, message: string): void {
    this.counted.push(() => this.options.counters.integrity(runId, message))
  }

  private acknowledge(item: IngestItem, seq: number): void {
    const runId = runIdOf(item)
    const fence = item.kind === 'events' ? item.header.fence : item.fence
    this.replies.push(() => item.send({ type: 'ack', runId, fence, seq }))
  }

  private async refuse(
    item: IngestItem & { kind: 'events' },
    why: { body: Buffer; reason: 'stale_fence' | 'run_ended' | 'run_unknown' },
  ): Promise<void> {
    const { runId, fence } = item.header
    const run = await this.runOf(item)
    if (run) await this.keep(run, { item, header: item.header, ...why })
    this.counted.push(() => this.options.counters.refused(why.reason))
    this.replies.push(() => item.send({ type: 'run.refused', runId, fence, reason: why.reason }))
  }

  private keep(run: RunRow, given: Omit<Parameters<typeof keepEvidence>[2], 'world'>): Promise<void> {
    return keepEvidence(this.tx, run, { ...given, world: this.options.world })
  }
}

/** Runs that are read ahead at most. */
const mostReadAhead = 256

/** Reads the runs of the first items, before the one that may change other runs than its own. */
export async function readRuns(db: Askable, items: readonly IngestItem[]): Promise<Map<RunId, RunRow | null>> {
  const decides = items.findIndex((item) => item.kind === 'ended' && decidesMore(item))
  const first = decides === -1 ? items : items.slice(0, decides)
  const ids = [...new Set(first.map(runIdOf))].slice(0, mostReadAhead)
  const [only, ...others] = ids
  if (only === undefined) return new Map()
  if (others.length === 0) return new Map([[only, await findRun(db, only)]])
  const found = new Map((await listGivenRuns(db, ids)).map((run) => [run.id, run]))
  return new Map(ids.map((id) => [id, found.get(id) ?? null]))
}

/**
 * Tells whether it is decided by what was before it in the batch, or changes what others are decided by, beside its own run: it
 * raises approvals, may open the breaker of a provider, or forgets a session of other runs.
 */
export function decidesMore(item: IngestItem): boolean {
  if (item.kind === 'change_set') return false
  if (item.kind === 'events') return (item.header.approvals ?? []).length > 0
  const { approvals = [], providerFailed, lostSessionId } = item.report
  return approvals.length > 0 || providerFailed === true || lostSessionId !== undefined
}

export const runIdOf = (item: IngestItem): RunId => (item.kind === 'events' ? item.header.runId : item.runId)
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The ending that the run has may be this one, told again. */
const isSameEnding = (run: RunRow, { exitReason }: EndReport): boolean =>
  run.exitReason === exitReason || (run.exitReason === 'circuit_breaker' && exitReason === 'error')
