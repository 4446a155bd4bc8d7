/**
 * Cuts the body of a page into chunks of bounded size: at headings where that is possible, else between paragraphs, lines, or
 * words. Chunks follow one another without a gap. Never fails, whatever the body holds.
 */
export interface Chunk {
  /** Headings above it, the highest first, as in `Deploy > Roll back`. Of a table, its first line. */
  heading: string
  /** The place in the body where it begins, in UTF-16 units. */
  start: number
  text: string
}

export interface Chunks {
  chunks: Chunk[]
  /** The texts of all headings. */
  headings: string[]
}

export type BodyKind = 'markdown' | 'csv'

const maxChunk = 1_600
/** A heading does not begin a new chunk before this: a body of headings alone would be a hundred thousand chunks. */
const minChunk = 200
const maxHeading = 200

export function chunksOf(kind: BodyKind, body: string): Chunks {
  // A byte order mark would hide the heading behind it. Places stay as they are.
  const text = body.replace(/^\uFEFF/, ' ')
  return kind === 'csv' ? rowsOf(text) : sectionsOf(text)
}

function rowsOf(body: string): Chunks {
  const [first = ''] = body.split(/\r?\n/, 1)
  const heading = first.slice(0, maxHeading).trim()
  return {
    chunks: pieces(body, 0).map((piece) => ({ ...piece, heading })),
    headings: heading === '' ? [] : [first],
  }
}

function sectionsOf(body: string): Chunks {
  const found = headingsOf(body)
  const chunks: Chunk[] = []
  /** The headings that are open, by their level. */
  const open: string[] = []
  let [start, path] = [0, '']
  /** The end of the headings with which the chunk begins. */
  let bareTo = 0
  const close = (end: number) => {
    chunks.push(...pieces(body.slice(start, end), start).map((piece) => ({ ...piece, heading: path })))
    start = end
  }
  for (const { level, text, at, end } of found) {
    open.length = Math.min(open.length, level - 1)
    open[level - 1] = text
    const isOwn = at - start >= minChunk
    if (isOwn) close(at)
    // A text that was too short to be a chunk of its own is shown under the headings with which it begins.
    else if (body.slice(bareTo, at).trim() !== '') continue
    path = pathOf(open)
    bareTo = end
  }
  close(body.length)
  return { chunks, headings: found.map(({ text }) => text) }
}

const pathOf = (open: readonly (string | undefined)[]): string =>
  open
    .filter((text) => text !== undefined && text !== '')
    .join(' > ')
    .slice(0, maxHeading)

interface Heading {
  /** 1 to 6. */
  level: number
  text: string
  at: number
  /** The end of its line. */
  end: number
}

const fence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/
const sharp = /^ {0,3}(#{1,6})(?:[ \t]|$)/
const underline = /^ {0,3}(?:(=+)|-+)[ \t]*$/

/** Headings of Markdown, but for those within code. */
function headingsOf(body: string): Heading[] {
  const found: Heading[] = []
  let fencedBy: string | null = null
  let before: { line: string; at: number } | null = null
  let at = 0
  for (const raw of body.split('\n')) {
    const line = raw.replace(/\r$/, '')
    const end = at + raw.length
    const mark = fence.exec(line)?.[1]
    if (fencedBy !== null) {
      if (mark !== undefined && mark.startsWith(fencedBy) && line.trim() === mark) fencedBy = null
      before = null
    } else if (mark !== undefined) {
      fencedBy = mark
      before = null
    } else {
      const level = sharp.exec(line)?.[1]?.length
      const under: RegExpExecArray | null = before === null ? null : underline.exec(line)
      if (level !== undefined) found.push({ level, text: textOf(line), at, end })
      else if (under !== null && before !== null)
        found.push({ level: under[1] === undefined ? 2 : 1, text: before.line.trim(), at: before.at, end })
      const isText: boolean = level === undefined && under === null && /^ {0,3}[^\s>|#*+-]/.test(line)
      before = isText ? { line, at } : null
    }
    at = end + 1
  }
  return found
}

/** Returns the heading without the signs around it. One expression would take long for a line of `#` and blanks. */
function textOf(line: string): string {
  const text = line.trim().replace(/^#+/, '').trim()
  const end = text.length - endSharps(text)
  return end === 0 || /\s/.test(text[end - 1]!) ? text.slice(0, end).trim() : text
}

function endSharps(text: string): number {
  let count = 0
  while (text[text.length - 1 - count] === '#') count++
  return count
}

type Piece = Pick<Chunk, 'start' | 'text'>

/** Cuts a text into pieces of at most `maxChunk`. A text of blanks alone has none. */
function pieces(text: string, start: number): Piece[] {
  const found: Piece[] = []
  for (let at = 0; at < text.length;) {
    const end = text.length - at <= maxChunk ? text.length : at + cutAt(text.slice(at, at + maxChunk))
    const piece = text.slice(at, end)
    if (piece.trim() !== '') found.push({ start: start + at, text: piece })
    at = end
  }
  return found
}

/** The end of the last paragraph, line or word in the second half; else all but a half of a character. */
function cutAt(text: string): number {
  for (const sign of ['\n\n', '\n', ' ']) {
    const at = text.lastIndexOf(sign)
    if (at >= text.length / 2) return at + sign.length
  }
  return /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length
}
