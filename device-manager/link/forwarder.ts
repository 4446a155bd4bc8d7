import type { RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { encodeFrame } from '../../shared/device/frame.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import type { DeviceMessage, EventsHeader } from '../../shared/device/protocol.ts'
import type { Log } from '../log/log.ts'
import type { RunEnding, SpoolRow } from '../spool/spool.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import { summarize, type FrameSummary } from './frame-summary.ts'

/**
 * Sends what the spool holds, run by run, in order: events, then the change-set, then the ending. It owns how far each
 * run was sent over the present link; what is acknowledged is deleted from the spool, and a new link begins again at the
 * first row that is not. Sending again is harmless, so nothing here has to be exact across a crash.
 *
 * The control plane answers every frame with the highest number it has stored. When all answers are in and it has less
 * than was sent, something was lost on the way and sending goes back to there.
 */
export interface ForwarderLink {
  sendBinary(frame: Uint8Array): boolean
  send(message: DeviceMessage): boolean
  /** Bytes waiting in the socket. */
  buffered(): number
  isOpen(): boolean
}

export interface ForwarderOptions {
  spool: Pick<DaemonSpool, 'read' | 'ack' | 'setBack' | 'settle' | 'stats' | 'ending' | 'endedAgoMs'>
  link: ForwarderLink
  log: Log
}

interface Cursor {
  runId: RunId
  fence: number
  sentSeq: number
  ackedSeq: number
  /** Bytes of the frames sent and not answered yet, oldest first; an ending counts as nothing. */
  inFlight: number[]
  inFlightBytes: number
  /** Acknowledged frames whose rows are still in the spool. */
  undeleted: number
  endedSent: boolean
}

/**
 * Under load the rows of this many frames are deleted in one commit of the spool; a commit for each would cost more than
 * the sending. Rows that stay for longer are sent again after a crash, which is harmless.
 */
const framesPerDelete = 8

export class Forwarder {
  private readonly options: ForwarderOptions
  private readonly cursors = new Map<RunId, Cursor>()

  constructor(options: ForwarderOptions) {
    this.options = options
  }

  /** A run that was taken just now: the spool holds nothing of it, and is not asked since its start is under way. */
  expect(run: { runId: RunId; fence: number }): void {
    this.cursors.set(run.runId, cursorAt(run, 0))
  }

  /** A run of this link: `ackSeq` is what the control plane has. */
  begin(run: { runId: RunId; fence: number }, ackSeq: number): void {
    this.settle(run, ackSeq)
    this.delete(run, ackSeq)
    this.cursors.set(run.runId, cursorAt(run, Math.max(ackSeq, this.ackedSeq(run))))
    this.pump(run.runId)
  }

  forget(runId: RunId): void {
    this.cursors.delete(runId)
  }

  /** The link is gone: what was under way counts as lost. */
  reset(): void {
    this.cursors.clear()
  }

  isSending(runId: RunId): boolean {
    return this.cursors.has(runId)
  }

  pump(runId: RunId): void {
    const cursor = this.cursors.get(runId)
    if (!cursor) return
    try {
      this.sendRows(cursor)
      this.sendEnding(cursor)
    } catch (error) {
      this.options.log.error({ err: error, runId }, 'the spool could not be read')
    }
  }

  pumpAll(): void {
    for (const runId of this.cursors.keys()) this.pump(runId)
  }

  acknowledged(ack: { runId: RunId; fence: number; seq: number }): void {
    const cursor = this.cursors.get(ack.runId)
    if (!cursor || cursor.fence !== ack.fence) return
    answered(cursor)
    if (ack.seq > cursor.ackedSeq) {
      cursor.ackedSeq = Math.min(ack.seq, cursor.sentSeq)
      cursor.undeleted++
    }
    const isIdle = cursor.inFlight.length === 0
    if (cursor.undeleted >= framesPerDelete || (cursor.undeleted > 0 && isIdle)) {
      this.delete(cursor, cursor.ackedSeq)
      cursor.undeleted = 0
    }
    if (isIdle && ack.seq < cursor.sentSeq) this.goBack(cursor, ack.seq)
    this.pump(ack.runId)
  }

  /** Where that is before what was acknowledged and deleted, the rows between are lost: asked for them, nobody could ever send them. */
  private goBack(cursor: Cursor, seq: number): void {
    try {
      this.options.spool.setBack(cursor, seq)
    } catch (error) {
      // Sent again, it is answered in the same way.
      this.options.log.warn({ err: error, runId: cursor.runId }, 'that events are lost could not be noted yet')
    }
    cursor.sentSeq = seq
    cursor.ackedSeq = Math.min(cursor.ackedSeq, seq)
    cursor.endedSent = false
  }

  /** The control plane keeps the frame as evidence but will not count it: it is done with. */
  refused(run: { runId: RunId; fence: number }): void {
    const cursor = this.cursors.get(run.runId)
    if (!cursor || cursor.fence !== run.fence) return
    answered(cursor)
    this.delete(cursor, cursor.sentSeq)
    cursor.ackedSeq = cursor.sentSeq
    this.pump(run.runId)
  }

  /** A spool that is locked or damaged for a moment keeps its rows: the next acknowledgement covers them too. */
  private delete(run: { runId: RunId; fence: number }, seq: number): void {
    try {
      this.options.spool.ack(run, seq)
    } catch (error) {
      this.options.log.warn({ err: error, runId: run.runId }, 'acknowledged rows could not be deleted yet')
    }
  }

  private settle(run: { runId: RunId; fence: number }, ackSeq: number): void {
    try {
      this.options.spool.settle(run, ackSeq)
    } catch (error) {
      this.options.log.warn({ err: error, runId: run.runId }, 'rows could not be numbered anew yet')
    }
  }

  private ackedSeq(run: { runId: RunId; fence: number }): number {
    try {
      return this.options.spool.stats(run)?.ackedSeq ?? 0
    } catch {
      return 0
    }
  }

  private sendRows(cursor: Cursor): void {
    const { spool, link } = this.options
    while (link.isOpen() && cursor.inFlightBytes < linkLimits.windowBytes && link.buffered() < linkLimits.windowBytes) {
      const { rows, told } = summarize(spool.read(cursor, cursor.sentSeq, linkLimits.frameTargetBytes))
      const last = rows.at(-1)
      if (!last) return
      const body = rows.length === 1 ? last.line : Buffer.concat(rows.map((row) => row.line))
      if (!link.sendBinary(encodeFrame(headerOf(cursor, { rows, told }, body), body))) return
      cursor.sentSeq = last.seq
      cursor.inFlight.push(body.length)
      cursor.inFlightBytes += body.length
    }
  }

  /**
   * The ending once its number is certain. The control plane has no more than was sent; where that goes beyond what the
   * spool is certain of, what is under way must be answered first.
   */
  private settledEnding(cursor: Cursor): RunEnding | null {
    const { spool } = this.options
    const certainSeq = spool.stats(cursor)?.certainSeq ?? null
    if (certainSeq !== null) {
      if (cursor.sentSeq > certainSeq) {
        if (cursor.inFlight.length > 0) return null
        cursor.sentSeq = cursor.ackedSeq
      }
      spool.settle(cursor, cursor.ackedSeq)
      this.delete(cursor, cursor.ackedSeq)
      this.sendRows(cursor)
    }
    return spool.ending(cursor)
  }

  private sendEnding(cursor: Cursor): void {
    const { spool, link } = this.options
    if (cursor.endedSent || !link.isOpen()) return
    const ending = spool.ending(cursor) && this.settledEnding(cursor)
    if (!ending || cursor.sentSeq < ending.report.eventCount) return
    const { runId, fence } = cursor
    if (ending.changeSet) {
      const body = new TextEncoder().encode(JSON.stringify(ending.changeSet))
      link.sendBinary(encodeFrame({ type: 'change_set', runId, fence, requestId: null }, body))
    }
    const ago = spool.endedAgoMs(cursor)
    const since = ago === null ? {} : { endedAgoMs: ago }
    if (!link.send({ type: 'run.ended', runId, fence, report: ending.report, ...since })) return
    cursor.endedSent = true
    cursor.inFlight.push(0)
  }
}

function cursorAt({ runId, fence }: { runId: RunId; fence: number }, seq: number): Cursor {
  return { runId, fence, sentSeq: seq, ackedSeq: seq, inFlight: [], inFlightBytes: 0, undeleted: 0, endedSent: false }
}

/** Frames are answered in the order in which they were sent. */
function answered(cursor: Cursor): void {
  cursor.inFlightBytes -= cursor.inFlight.shift() ?? 0
}

function headerOf(
  { runId, fence }: Cursor,
  { rows, told }: { rows: readonly SpoolRow[]; told: FrameSummary['told'] },
  body: Uint8Array,
): EventsHeader {
  return {
    type: 'run.events',
    runId,
    fence,
    firstSeq: rows[0]?.seq ?? 0,
    lastSeq: rows.at(-1)?.seq ?? 0,
    ...told,
    sha256: createHash('sha256').update(body).digest('hex'),
  }
}
