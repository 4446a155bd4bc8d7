import { type Automaton, decodeState, escapeByte, nextEntry, skipByte } from './redact-automaton.ts'

export interface Match {
  start: number
  end: number
  label: string
}

/** Bytes that are skipped inside a partial match: more of a run of white space, a line end, an escape sequence. */
interface Gap {
  at: number
  length: number
}

/** The skipped bytes after which a partial match ends, so that the held bytes stay bounded. */
const maxSkippedBytes = 8192
const maxEscapeBytes = 64

/** The position of a scan in a colour or cursor sequence: ESC [ parameters letter, or ESC ( letter. */
type EscapeState = 'none' | 'escape' | 'control' | 'charset'

/**
 * Makes one pass of one automaton over a stream that comes in chunks. Offsets are those of the buffer its owner holds.
 *
 * Colour and cursor sequences inside a partial match are ignored, since a program may colour a part of a secret. The
 * bytes of the sequence may themselves begin a secret, so from the ESC on a second scan, `branch`, reads the same bytes
 * as ordinary ones. The branch is dropped once its own partial match begins behind the sequence, because from there on
 * both scans are the same. If the bytes turn out to be no sequence, the scan continues as its branch.
 */
export class Scan {
  private readonly automaton: Automaton
  private state = 0
  private gaps: Gap[] = []
  private skippedBytes = 0
  private escape: EscapeState = 'none'
  private escapeBytes = 0
  private branch: Scan | null = null
  private branchFrom = 0

  constructor(automaton: Automaton) {
    this.automaton = automaton
  }

  /** True while no partial match is open, so that a new scan would find the same. */
  get isAtRest(): boolean {
    return this.state === 0 && this.escape === 'none' && this.branch === null
  }

  /** Reads `buffer` from `from` to `end` and adds the longest pattern that ends at each place. Ends never go back. */
  feed(buffer: Uint8Array, { from, end }: { from: number; end: number }, matches: Match[]): void {
    const { automaton } = this
    const { rows, rowOf, columnOf } = automaton
    let i = from
    while (i < end) {
      if (this.escape !== 'none' || this.branch !== null) {
        this.slowStep(buffer[i]!, i, matches)
        i++
        continue
      }
      let state = this.state
      let entry = 0
      for (; i < end; i++) {
        const byte = buffer[i]!
        const row = rowOf[state]!
        entry = row < 0 ? nextEntry(automaton, state, byte) : rows[row + columnOf[byte]!]!
        if (entry < 0) break
        state = entry
      }
      this.state = state
      if (entry < 0 && i < end) this.event(entry, i++, matches)
    }
  }

  /** The number of bytes of a pattern that the longest open partial match has. */
  get openLength(): number {
    const own = this.automaton.depth[this.state]!
    return this.branch === null ? own : Math.max(own, this.branch.openLength)
  }

  /** Offset of the first byte of a partial match that is open at `end`; `end` when there is none. */
  heldFrom(end: number): number {
    const own = this.state === 0 ? end : this.startOf(this.automaton.depth[this.state]!, end)
    return this.branch === null ? own : Math.min(own, this.branch.heldFrom(end))
  }

  /** Adapts to an owner that dropped bytes from the front of its buffer, none of them held. */
  shift(dropped: number): void {
    this.forgetGapsBefore(dropped)
    for (const gap of this.gaps) gap.at -= dropped
    this.branchFrom -= dropped
    this.branch?.shift(dropped)
  }

  private slowStep(byte: number, at: number, matches: Match[]): void {
    this.branch?.step(byte, at, matches)
    if (this.escape === 'none') this.stepOwn(byte, at, matches)
    else this.stepEscape(byte, at)
    if (this.escape === 'none' && this.branch !== null && this.branch.heldFrom(at + 1) >= this.branchFrom)
      this.branch = null
  }

  private step(byte: number, at: number, matches: Match[]): void {
    if (this.escape === 'none' && this.branch === null) this.stepOwn(byte, at, matches)
    else this.slowStep(byte, at, matches)
  }

  private stepOwn(byte: number, at: number, matches: Match[]): void {
    const entry = nextEntry(this.automaton, this.state, byte)
    if (entry >= 0) this.state = entry
    else this.event(entry, at, matches)
  }

  private event(entry: number, at: number, matches: Match[]): void {
    if (entry === skipByte) return this.skip(at)
    if (entry === escapeByte) {
      this.escape = 'escape'
      this.escapeBytes = 0
      // An older branch holds a partial match, too, and makes this branch for itself.
      this.branch ??= new Scan(this.automaton)
      return this.skip(at)
    }
    this.state = decodeState(entry)
    const { outLength, outLabel, labels } = this.automaton
    const label = labels[outLabel[this.state]!]!
    matches.push({ start: this.startOf(outLength[this.state]!, at + 1), end: at + 1, label })
  }

  private stepEscape(byte: number, at: number): void {
    const next = afterEscape(this.escape, byte)
    if (next === null || ++this.escapeBytes > maxEscapeBytes) return this.giveUp()
    this.escape = next
    if (next === 'none') this.branchFrom = at + 1
    this.skip(at)
  }

  private skip(at: number): void {
    const last = this.gaps.at(-1)
    if (last !== undefined && last.at + last.length === at) last.length++
    else this.gaps.push({ at, length: 1 })
    if (++this.skippedBytes <= maxSkippedBytes) return
    this.forgetGapsBefore(this.startOf(this.automaton.depth[this.state]!, at + 1))
    if (this.skippedBytes > maxSkippedBytes) this.giveUp()
  }

  /** Ends the partial match and continues as the branch, if there is one. */
  private giveUp(): void {
    const branch = this.branch
    this.state = branch?.state ?? 0
    this.gaps = branch?.gaps ?? []
    this.skippedBytes = branch?.skippedBytes ?? 0
    this.escape = branch?.escape ?? 'none'
    this.escapeBytes = branch?.escapeBytes ?? 0
    this.branchFrom = branch?.branchFrom ?? 0
    this.branch = branch?.branch ?? null
  }

  private forgetGapsBefore(offset: number): void {
    this.gaps = this.gaps.filter((gap) => gap.at >= offset)
    this.skippedBytes = this.gaps.reduce((sum, gap) => sum + gap.length, 0)
  }

  /** Goes back from `end` over `symbols` bytes that count; gaps between them do not count. */
  private startOf(symbols: number, end: number): number {
    let left = symbols
    let position = end
    for (let i = this.gaps.length - 1; i >= 0; i--) {
      const gap = this.gaps[i]!
      const counted = position - (gap.at + gap.length)
      if (left <= counted) break
      left -= counted
      position = gap.at
    }
    return position - left
  }
}

/** The state after `byte`, or null when the bytes are no colour or cursor sequence. */
function afterEscape(state: EscapeState, byte: number): EscapeState | null {
  if (byte === 0x1b) return 'escape'
  if (state === 'charset') return 'none'
  if (state === 'escape') return byte === 0x5b ? 'control' : byte === 0x28 || byte === 0x29 ? 'charset' : null
  if (byte >= 0x20 && byte <= 0x3f) return 'control'
  return byte >= 0x40 && byte <= 0x7e ? 'none' : null
}
