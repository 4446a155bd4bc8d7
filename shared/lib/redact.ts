import { type Automaton, buildAutomaton, type BeginTable, beginsOf, nextBegin } from './redact-automaton.ts'
import { formsOf } from './redact-forms.ts'
import { type Match, Scan } from './redact-scan.ts'

export interface SecretValue {
  name: string
  value: string
}

const nothing = new Uint8Array(0)
const encoder = new TextEncoder()

interface Known {
  secrets: readonly SecretValue[]
  automata: readonly Automaton[]
  begins: BeginTable
}
const nothingKnown: Known = { secrets: [], automata: [], begins: beginsOf([]) }
const scansOf = ({ automata }: Known): Scan[] => automata.map((automaton) => new Scan(automaton))

/** The beginning of a secret that may be seen. Values of less than twice as many bytes are no secrets. */
const mostReleased = 3

/**
 * Replaces the values of secrets in a stream of bytes, which comes in any chunks, by `[redacted:NAME]`. The output does
 * not depend on the cuts. Only bytes that may still become a secret are held back, so `flush` must be called at the end
 * and only there. Who shows the stream to a person calls `release` when nothing more came for a while: a prompt that ends
 * like the beginning of a secret comes late, never wrong.
 *
 * It finds a value as it is, with other white space or colour sequences inside it, as JSON and URL encoders write it,
 * in base64 and in hex, also as a part of something longer. Values under 6 bytes are ignored. Overlapping matches are
 * replaced together, by the name of the longest.
 */
export class Redactor {
  /** The values, shared with the redactors that were made of this one. */
  private readonly shared: { known: Known }
  /** The values of which `scans` were made. */
  private used: Known
  private scans: readonly Scan[] = []
  private pending: Uint8Array = nothing
  /** The number of bytes of `pending` that were released. */
  private shown = 0
  /** Matches in `pending`, in order and without overlaps; the last of them may still grow. */
  private found: Match[] = []

  constructor(secrets: Iterable<SecretValue>, shared = { known: nothingKnown }) {
    this.shared = shared
    this.used = shared.known
    this.scans = scansOf(shared.known)
    this.add(...secrets)
  }

  /**
   * Returns a redactor for another stream, with the same secrets, also those added later: making the tables anew would take as long as the
   * first time.
   */
  another(): Redactor {
    return new Redactor([], this.shared)
  }

  /** Applies to bytes that come later and to those still held back. */
  add(...secrets: readonly SecretValue[]): void {
    if (secrets.length === 0) return
    const all = [...this.shared.known.secrets, ...secrets]
    const automata = automataOf(all)
    this.shared.known = { secrets: all, automata, begins: beginsOf(automata) }
    this.catchUp()
  }

  private catchUp(): void {
    const { known } = this.shared
    if (this.used === known) return
    this.used = known
    this.scans = scansOf(known)
    this.found = scanAll(this.scans, { buffer: this.pending, from: 0, begins: known.begins }, [])
  }

  /** Returns the bytes that are safe now, possibly `chunk` itself. `chunk` is not kept. */
  push(chunk: Uint8Array): Uint8Array {
    this.catchUp()
    if (this.scans.length === 0 || chunk.length === 0) return chunk
    const buffer = this.pending.length === 0 ? chunk : concat(this.pending, chunk)
    this.found = scanAll(this.scans, { buffer, from: this.pending.length, begins: this.used.begins }, this.found)
    const safe = this.safeLength(buffer.length)
    const done = this.found.filter((match) => match.end <= safe)
    this.found = this.found.slice(done.length)
    if (safe > 0) {
      for (const match of this.found) {
        match.start -= safe
        match.end -= safe
      }
      for (const scan of this.scans) scan.shift(safe)
    }
    this.pending = safe === buffer.length ? nothing : buffer.slice(safe)
    const shown = Math.min(this.shown, safe)
    this.shown -= shown
    return replaced(buffer.subarray(0, safe), done, shown)
  }

  /**
   * Returns what is held back although it is hardly a secret: not more than its first `mostReleased` bytes. What makes a
   * secret of them later is still replaced.
   */
  release(): Uint8Array {
    this.catchUp()
    const isLong = this.found.length > 0 || this.scans.some((scan) => scan.openLength > mostReleased)
    if (isLong) return nothing
    const rest = this.pending.subarray(this.shown)
    this.shown = this.pending.length
    return rest
  }

  get isHolding(): boolean {
    return this.pending.length > this.shown
  }

  /** Returns the bytes that are still held back at the end of the stream. */
  flush(): Uint8Array {
    this.catchUp()
    const rest = replaced(this.pending, this.found, this.shown)
    this.pending = nothing
    this.shown = 0
    this.found = []
    this.scans = scansOf(this.used)
    return rest
  }

  /** Redacts a whole text by itself; the stream is not touched. */
  redactText(text: string): string {
    if (this.shared.known.automata.length === 0 || text.length === 0) return text
    const buffer = encoder.encode(text)
    const found = this.regionsOf(buffer)
    return found.length === 0 ? text : new TextDecoder('utf-8', { ignoreBOM: true }).decode(replaced(buffer, found))
  }

  /** Adds the labels that would stand in a JSON value; of secrets that overlap, one. */
  findLabels(value: unknown, labels: Set<string>): void {
    if (typeof value === 'string') for (const { label } of this.regionsOf(encoder.encode(value))) labels.add(label)
    if (typeof value !== 'object' || value === null) return
    for (const [name, item] of Object.entries(value)) {
      if (!Array.isArray(value)) this.findLabels(name, labels)
      this.findLabels(item, labels)
    }
  }

  /** Redacts all strings in a JSON value, names of fields included. */
  redactJson(value: unknown): unknown {
    if (typeof value === 'string') return this.redactText(value)
    if (this.shared.known.automata.length === 0 || typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item) => this.redactJson(item))
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [this.redactText(name), this.redactJson(item)]),
    )
  }

  private regionsOf(buffer: Uint8Array): Match[] {
    const { known } = this.shared
    if (known.automata.length === 0 || buffer.length === 0) return []
    return scanAll(scansOf(known), { buffer, from: 0, begins: known.begins }, [])
  }

  /**
   * The length up to which nothing can change any more: before every open partial match, and before every match that
   * one of them may extend.
   */
  private safeLength(length: number): number {
    const open = Math.min(...this.scans.map((scan) => scan.heldFrom(length)))
    const growing = this.found.find((match) => match.end > open)
    return growing === undefined ? open : Math.min(open, growing.start)
  }
}

function automataOf(secrets: readonly SecretValue[]): Automaton[] {
  const forms = secrets.map((secret) => ({ label: labelOf(secret.name), ...formsOf(secret.value) }))
  const text = forms.flatMap((form) => form.text.map((bytes) => ({ bytes, label: form.label })))
  if (text.length === 0) return []
  const encoded = forms.flatMap((form) => form.encoded.map((bytes) => ({ bytes, label: form.label })))
  return [buildAutomaton(text, 'white_space'), buildAutomaton(encoded, 'line_ends')]
}

/** A label that is safe inside JSON and URLs, so that a redacted line of JSON is still one. */
export function labelOf(name: string): string {
  return `[redacted:${name.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 100)}]`
}

interface ScanInput {
  buffer: Uint8Array
  from: number
  begins: BeginTable
}

/** Number of bytes that all scans read from a place where a secret may begin. */
const closerBytes = 32

/** The known matches and those that the scans find from `from` on, with overlapping ones merged. */
function scanAll(scans: readonly Scan[], { buffer, from, begins }: ScanInput, known: Match[]): Match[] {
  const matches: Match[] = []
  for (let at = from; at < buffer.length;) {
    if (scans.every((scan) => scan.isAtRest)) at = nextBegin(buffer, at, begins)
    const end = Math.min(at + closerBytes, buffer.length)
    for (const scan of scans) scan.feed(buffer, { from: at, end }, matches)
    at = end
  }
  return matches.length === 0 ? known : merged([...known, ...matches])
}

interface Region extends Match {
  longest: number
}

function merged(matches: (Match & { longest?: number })[]): Region[] {
  const sorted = matches.map((match) => ({ ...match, longest: match.longest ?? match.end - match.start }))
  sorted.sort((a, b) => a.start - b.start || a.end - b.end)
  const regions: Region[] = []
  for (const match of sorted) {
    const last = regions.at(-1)
    if (last === undefined || match.start >= last.end) {
      regions.push(match)
      continue
    }
    if (match.longest > last.longest) {
      last.longest = match.longest
      last.label = match.label
    }
    last.end = Math.max(last.end, match.end)
  }
  return regions
}

/** The bytes behind the first `shown` ones, with labels for the regions. */
function replaced(bytes: Uint8Array, regions: readonly Match[], shown = 0): Uint8Array {
  if (regions.length === 0) return bytes.subarray(shown)
  const pieces: Uint8Array[] = []
  let from = shown
  for (const region of regions) {
    pieces.push(bytes.subarray(from, Math.max(from, region.start)), encoder.encode(region.label))
    from = region.end
  }
  pieces.push(bytes.subarray(from))
  return concat(...pieces)
}

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
