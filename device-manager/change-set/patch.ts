import { isUtf8 } from 'node:buffer'

/** A changed path as `git diff --raw` tells it, with its part of the patch. Paths are latin1 text of their bytes. */
export interface PatchedFile {
  letter: string
  oldMode: string
  newMode: string
  oldOid: string
  oldPath: string
  path: string
  binary: boolean
  additions: number
  deletions: number
  /** null when it was over the limit for one file, or is no UTF-8. */
  patch: Buffer | null
  isText: boolean
}

type RawEntry = Pick<PatchedFile, 'letter' | 'oldMode' | 'newMode' | 'oldOid' | 'oldPath' | 'path'>

interface Section {
  chunks: Buffer[]
  bytes: number
  isOver: boolean
  inHunk: boolean
  binary: boolean
  additions: number
  deletions: number
}

const NUL = 0
const NEWLINE = 10
const sectionMark = Buffer.from('diff --git ')
const binaryMark = Buffer.from('Binary files ')
const literalMark = Buffer.from('GIT binary patch')
/** Enough of a line to tell what it is. */
const telling = 16

/**
 * Reads the output of `git diff --raw -p -z` as it comes, in bounded memory: a file's patch above `fileBytes` is counted
 * and dropped. Quoted names and hunks that always begin with one of ` +-\@` mean that a line beginning with
 * `diff --git ` is never content.
 */
export class PatchReader {
  readonly #limits: { filePatchBytes: number; diffBytes: number }
  readonly #entries: RawEntry[] = []
  readonly #sections: Section[] = []
  #phase: 'raw' | 'patch' = 'raw'
  #held: Buffer = Buffer.alloc(0)
  #isLineOpen = false
  #keptBytes = 0

  constructor(limits: { filePatchBytes: number; diffBytes: number }) {
    this.#limits = limits
  }

  /** false once all patches together are over the limit. */
  push(chunk: Buffer): boolean {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const at = this.#phase === 'raw' ? this.#readRaw(bytes) : 0
    if (this.#phase === 'raw') this.#held = bytes.subarray(at)
    else this.#readPatch(bytes, at)
    return this.#keptBytes <= this.#limits.diffBytes
  }

  /** The files, or null when patch and listing do not agree: a file has new stat data and the same content. */
  end(): PatchedFile[] | null {
    if (this.#phase === 'raw' && this.#held.length > 0) return null
    if (this.#phase === 'patch' && this.#held.length > 0) this.#line(this.#held)
    const files: PatchedFile[] = []
    let at = 0
    for (const entry of this.#entries) {
      // A file that became a symlink (or the reverse) is printed as a deletion and a creation.
      const count = entry.letter === 'T' ? 2 : 1
      const sections = this.#sections.slice(at, at + count)
      if (sections.length < count) return null
      files.push(joinSections(entry, sections))
      at += count
    }
    return at === this.#sections.length ? files : null
  }

  #readRaw(bytes: Buffer): number {
    let at = 0
    while (at < bytes.length) {
      if (bytes[at] === NUL) {
        this.#phase = 'patch'
        this.#held = Buffer.alloc(0)
        return at + 1
      }
      const headEnd = bytes.indexOf(NUL, at)
      const pathEnd = headEnd < 0 ? -1 : bytes.indexOf(NUL, headEnd + 1)
      if (pathEnd < 0) return at
      const [oldMode = '', newMode = '', oldOid = '', , letters = ''] = bytes
        .toString('latin1', at + 1, headEnd)
        .split(' ')
      const letter = letters.charAt(0)
      const oldPath = bytes.toString('latin1', headEnd + 1, pathEnd)
      const newEnd = letter === 'R' ? bytes.indexOf(NUL, pathEnd + 1) : pathEnd
      if (newEnd < 0) return at
      const path = letter === 'R' ? bytes.toString('latin1', pathEnd + 1, newEnd) : oldPath
      this.#entries.push({ letter, oldMode, newMode, oldOid, oldPath, path })
      at = newEnd + 1
    }
    return at
  }

  #readPatch(bytes: Buffer, from: number): void {
    let at = from
    this.#held = Buffer.alloc(0)
    while (at < bytes.length) {
      const newline = bytes.indexOf(NEWLINE, at)
      const end = newline < 0 ? bytes.length : newline + 1
      if (newline < 0 && !this.#isLineOpen && end - at < telling) {
        // Copied: the chunk it points into is larger by far.
        this.#held = Buffer.from(bytes.subarray(at))
        return
      }
      this.#line(bytes.subarray(at, end))
      this.#isLineOpen = newline < 0
      at = end
    }
  }

  #line(line: Buffer): void {
    if (!this.#isLineOpen && startsWith(line, sectionMark)) {
      this.#sections.push({
        chunks: [],
        bytes: 0,
        isOver: false,
        inHunk: false,
        binary: false,
        additions: 0,
        deletions: 0,
      })
    }
    const section = this.#sections.at(-1)
    if (section === undefined) return
    if (!this.#isLineOpen) classify(section, line)
    this.#keep(section, line)
  }

  #keep(section: Section, line: Buffer): void {
    if (section.isOver) return
    section.bytes += line.length
    this.#keptBytes += line.length
    if (section.bytes > this.#limits.filePatchBytes) {
      section.isOver = true
      section.chunks = []
      this.#keptBytes -= section.bytes
      return
    }
    section.chunks.push(line)
  }
}

function classify(section: Section, line: Buffer): void {
  const first = line[0]
  if (section.inHunk) {
    if (first === 0x2b) section.additions++
    else if (first === 0x2d) section.deletions++
  } else if (first === 0x40) section.inHunk = true
  else if (startsWith(line, binaryMark) || startsWith(line, literalMark)) section.binary = true
}

function startsWith(line: Buffer, mark: Buffer): boolean {
  return line.length >= mark.length && line.compare(mark, 0, mark.length, 0, mark.length) === 0
}

function joinSections(entry: RawEntry, sections: readonly Section[]): PatchedFile {
  const isOver = sections.some((section) => section.isOver)
  const whole = isOver ? null : Buffer.concat(sections.flatMap((section) => section.chunks))
  const isText = whole === null || isUtf8(whole)
  return {
    ...entry,
    binary: sections.some((section) => section.binary),
    additions: sections.reduce((sum, section) => sum + section.additions, 0),
    deletions: sections.reduce((sum, section) => sum + section.deletions, 0),
    patch: isText ? whole : null,
    isText,
  }
}
