import { createHash, type Hash } from 'node:crypto'
import { lineWithinBound } from '../../../shared/device/event-line.ts'
import { askedCallLimits, type AskedCall } from '../../../shared/runs/asked-call.ts'
import { askedCallOf, type RunEventBody } from '../../../shared/runs/events.ts'
import type { RunStats, SpoolRow } from '../../spool/spool.ts'

/** An event that was accepted and has no seq yet: it gets one when it is written, so what cannot be written can still become part of a gap. */
export interface PendingEvent {
  at: number
  body: RunEventBody
  /** Bytes of the harness's output that it stands for: a gap in its place counts them. */
  outputBytes: number
  /** The memory that it takes, about. */
  heldBytes: number
}

/** Events that tell of the run itself; never dropped with output. */
const essentialKinds: ReadonlySet<string> = new Set([
  'started',
  'session',
  'usage',
  'error',
  'result',
  'input',
  'gap',
  'ended',
])

export function isEssential({ body }: PendingEvent): boolean {
  return essentialKinds.has(body.kind) || (body.kind === 'permission' && body.data.ask !== undefined)
}

export function pendingEvent(at: number, body: RunEventBody): PendingEvent {
  const outputBytes = outputBytesOf(body)
  return { at, body, outputBytes, heldBytes: outputBytes + 128 }
}

function outputBytesOf(body: RunEventBody): number {
  if (body.kind === 'text' || body.kind === 'raw') {
    const { text, base64 } = body.data
    return text === undefined ? Buffer.byteLength(base64 ?? '', 'base64') : Buffer.byteLength(text)
  }
  return Buffer.byteLength(JSON.stringify(body.data))
}

const newline = Buffer.from('\n')

/** Counts and hash of the rows written so far. */
export interface Written {
  lastSeq: number
  stats: RunStats
  hash: Hash
}

const noStats: RunStats = { gapBytes: 0, toolCalls: 0, usage: null, sessionId: null, approvals: [] }

export function nothingWritten(): Written {
  return { lastSeq: 0, stats: noStats, hash: createHash('sha256') }
}

/** Makes the rows of these events, and the counts that hold once they are written. `before` stays as it was. */
export function toRows(before: Written, events: readonly PendingEvent[]): { rows: SpoolRow[]; after: Written } {
  const hash = before.hash.copy()
  let { lastSeq, stats } = before
  const rows = events.map(({ at, body }) => {
    lastSeq++
    stats = statsWith(stats, body)
    const written = Buffer.from(`${JSON.stringify({ seq: lastSeq, at, kind: body.kind, data: body.data })}\n`)
    const whole = written.subarray(0, -1)
    const kept = lineWithinBound(whole, lastSeq)
    if (kept !== whole) stats = { ...stats, gapBytes: stats.gapBytes + whole.length }
    const line = kept === whole ? written : Buffer.concat([kept, newline])
    hash.update(line)
    return { seq: lastSeq, line }
  })
  return { rows, after: { lastSeq, stats, hash } }
}

function statsWith(stats: RunStats, body: RunEventBody): RunStats {
  switch (body.kind) {
    case 'gap':
      return { ...stats, gapBytes: stats.gapBytes + body.data.bytes }
    case 'tool_call':
      return { ...stats, toolCalls: stats.toolCalls + 1 }
    case 'usage':
      return { ...stats, usage: body.data }
    case 'session':
      return { ...stats, sessionId: body.data.sessionId }
    case 'permission':
      return { ...stats, approvals: withCall(stats.approvals, askedCallOf(body.data)) }
    default:
      return stats
  }
}

/** Adds the call: one that is asked twice is one approval. */
function withCall(calls: readonly AskedCall[], call: AskedCall | null): readonly AskedCall[] {
  if (!call || calls.length >= askedCallLimits.calls) return calls
  return calls.some(({ inputDigest }) => inputDigest === call.inputDigest) ? calls : [...calls, call]
}
