import type { RunId } from '../../../shared/lib/ids.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import { runEventId, type RunEvent } from '../../../shared/api/run-events.ts'
import { lineWithinBound } from '../../../shared/device/event-line.ts'
import { parseNested, maxNested } from '../../../shared/lib/storable.ts'
import { commandResult, storedEvent, type CommandResult } from '../../../shared/runs/events.ts'
import { plainHarness } from '../../../shared/runs/harnesses.ts'
import type { Db } from '../../db/open.ts'
import { linesOf } from './log-lines.ts'
import { findFrame, listFrames, listFramesBackward, mayBeMore, type Frame } from './log-store.ts'

// Single events, cut out of the frames in which devices sent them.

/** Frames read at once: a frame aims at 256 KiB. */
const framesAtOnce = 8
/** A page ends early when its events hold more bytes than this. */
export const pageBytes = 4 * 1024 * 1024
/** The latest time that a Date holds. */
const maxTime = 8_640_000_000_000_000

/** The part of a frame that is read. */
type Lines = Pick<Frame, 'firstSeq' | 'lastSeq' | 'body'>

interface Numbered {
  seq: number
  text: Uint8Array
}

/**
 * Lines of a frame, in order, not parsed yet. Their numbers follow from their places: what a line says of itself is not
 * relied on. Lines beyond the last number do not count: a device may send millions of empty ones.
 */
function* numbered(frame: Lines): Generator<Numbered> {
  let seq = frame.firstSeq
  for (const text of linesOf(frame.body)) {
    if (seq > frame.lastSeq) return
    // A release that had no bound may have stored longer ones.
    yield { seq, text: lineWithinBound(text, seq) }
    seq++
  }
}

function toEvent(frame: Frame, { seq, text: line }: Numbered): RunEvent {
  const event = contentOf(line, frame.receivedAt)
  return {
    id: runEventId(frame.runId, frame.fence, seq),
    object: 'run_event',
    runId: frame.runId,
    seq,
    kind: event.kind,
    createdAt: toTimestamp(Math.abs(event.at) <= maxTime ? event.at : frame.receivedAt),
    data: event.data,
  }
}

function contentOf(line: Uint8Array, receivedAt: number): { kind: string; at: number; data: Record<string, unknown> } {
  const text = Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8')
  const stored = storedEvent.safeParse(parseJson(text))
  return stored.success ? stored.data : { kind: 'raw', at: receivedAt, data: { text } }
}

/** null, too, for what could not be written again. */
function parseJson(text: string): unknown {
  try {
    return parseNested(text, maxNested)
  } catch {
    return null
  }
}

export interface EventPage {
  events: RunEvent[]
  /** The number of bytes in the lines of the events. */
  bytes: number
  hasMore: boolean
}

/** Events after `afterSeq`, oldest first: at most `limit`, fewer when they have more bytes than `mostBytes`. */
export async function listEvents(
  db: Db,
  range: { runId: RunId; afterSeq: number; limit: number; mostBytes?: number },
): Promise<EventPage> {
  const page = new Page(range)
  let after = range.afterSeq
  for (;;) {
    const frames = await listFrames(db, { runId: range.runId, afterSeq: after, limit: framesAtOnce })
    for (const frame of frames)
      for (const line of numbered(frame)) {
        if (line.seq <= range.afterSeq) continue
        if (!page.take(frame, line)) return page.full()
        if (isLong(line)) await othersTurn()
      }
    after = frames.at(-1)?.lastSeq ?? after
    if (!mayBeMore(frames, framesAtOnce)) return page.done()
  }
}

/** The number of events that a device tells when a run begins, before its harness says anything. */
const openingEvents = 10

/** The first events of a run, of its first two frames. */
export async function listOpeningEvents(db: Db, runId: RunId): Promise<RunEvent[]> {
  const frames = await listFrames(db, { runId, afterSeq: 0, limit: 2 })
  const events: RunEvent[] = []
  for (const frame of frames)
    for (const line of numbered(frame)) {
      if (events.length >= openingEvents) return events
      events.push(toEvent(frame, line))
    }
  return events
}

/** Events before `beforeSeq`, newest first. */
export async function listEventsBackward(
  db: Db,
  range: { runId: RunId; beforeSeq: number; limit: number },
): Promise<EventPage> {
  const page = new Page(range)
  let before = range.beforeSeq
  for (;;) {
    const frames = await listFramesBackward(db, { runId: range.runId, beforeSeq: before, limit: framesAtOnce })
    for (const frame of frames)
      for (const line of [...numbered(frame)].reverse()) {
        if (line.seq >= range.beforeSeq) continue
        if (!page.take(frame, line)) return page.full()
        if (isLong(line)) await othersTurn()
      }
    before = frames.at(-1)?.firstSeq ?? before
    if (!mayBeMore(frames, framesAtOnce)) return page.done()
  }
}

/** Parsing a long line takes so long that others come in between. */
const isLong = ({ text }: Numbered): boolean => text.length > 128 * 1024
const othersTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

class Page {
  private readonly events: RunEvent[] = []
  private readonly limit: number
  private readonly mostBytes: number
  private bytes = 0

  constructor({ limit, mostBytes = pageBytes }: { limit: number; mostBytes?: number }) {
    this.limit = limit
    this.mostBytes = mostBytes
  }

  /** False when the page has no room for it, which is not read then; the first event always has. */
  take(frame: Frame, line: Numbered): boolean {
    const { length } = line.text
    if (this.events.length >= this.limit || (this.events.length > 0 && this.bytes + length > this.mostBytes))
      return false
    this.bytes += length
    this.events.push(toEvent(frame, line))
    return true
  }

  full = (): EventPage => ({ events: this.events, bytes: this.bytes, hasMore: true })
  done = (): EventPage => ({ events: this.events, bytes: this.bytes, hasMore: false })
}

/** The event with this number and fence, or null. */
export async function findEvent(db: Db, key: { runId: RunId; fence: number; seq: number }): Promise<RunEvent | null> {
  const frame = await findFrame(db, key.runId, key.seq)
  if (frame === null || frame.fence !== key.fence) return null
  for (const line of numbered(frame)) if (line.seq === key.seq) return toEvent(frame, line)
  return null
}

/** Pages of events that are searched for the final answer, from the end. */
const answerPages = 4

export interface FinalAnswer {
  text: string
  isError: boolean
  /** The result of a run that did a command step of a workflow; null: it did none. */
  gate: CommandResult | null
}

/** Events of which the last ones are searched for a result. */
const eventsOfFrame = 500

/** The result that is declared in the last frame of a run; null: `findFinalAnswer` looks further. */
export function resultIn(last: Lines): FinalAnswer | null {
  for (const { text } of [...numbered(last)].reverse().slice(0, eventsOfFrame)) {
    const result = resultOf(contentOf(text, 0))
    if (result !== null) return result
  }
  return null
}

function resultOf({ kind, data }: Pick<RunEvent, 'kind' | 'data'>): FinalAnswer | null {
  const { text, isError, gate } = data
  if (kind !== 'result' || typeof text !== 'string') return null
  return { text, isError: isError === true, gate: commandResult.safeParse(gate).data ?? null }
}

/** Pieces of an agent's last words that are put together, in characters. */
const mostAnswerChars = 256 * 1024

/**
 * The last words of the agent: the result it declared, else what it said last. Agent programs tell that in pieces, which follow each other;
 * of a plain program it is the last of its output.
 */
export async function findFinalAnswer(
  db: Db,
  { id: runId, harness }: { id: RunId; harness: string | null },
): Promise<FinalAnswer | null> {
  let before = Number.MAX_SAFE_INTEGER
  const said: string[] = []
  let isWhole = false
  let chars = 0
  for (let page = 0; page < answerPages; page++) {
    const { events, hasMore } = await listEventsBackward(db, { runId, beforeSeq: before, limit: 500 })
    for (const event of events) {
      const result = resultOf(event)
      if (result !== null) return result
      const { text, parentToolCallId } = event.data
      const isSaid = event.kind === 'text' && typeof text === 'string' && parentToolCallId === undefined
      if (isSaid && !isWhole) {
        said.unshift(text)
        chars += text.length
      }
      isWhole ||= said.length > 0 && (!isSaid || harness === plainHarness || chars >= mostAnswerChars)
    }
    const last = events.at(-1)
    if (!hasMore || last === undefined) break
    before = last.seq
  }
  return said.length === 0 ? null : { text: said.join(''), isError: false, gate: null }
}
