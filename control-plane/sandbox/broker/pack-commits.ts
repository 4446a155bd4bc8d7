import { createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'

// Tells whether a push goes forward: commits of its pack lead from the new id back to the old one. Each is known by the hash of its own
// bytes, so what is found is so, whoever made the pack; what is not found counts as no step forward. git puts commits before all else, and
// makes them of nothing but each other, so only the beginning of the pack is read.

export interface PackLimits {
  /** The bytes of the pack that are read and kept. */
  bytes: number
  /** The bytes of the commits, once they are unpacked. */
  unpackedBytes: number
  commits: number
}

export const packLimits: PackLimits = { bytes: 8 * 1024 * 1024, unpackedBytes: 16 * 1024 * 1024, commits: 20_000 }

const commitType = 1
const tagType = 4
const offsetDelta = 6
const refDelta = 7
const mostOfOne = 1024 * 1024
/** The commits that are read in one go: other requests are not to wait long. */
const perTurn = 100

/** `more`: the bytes end before it can be said. */
export type Forward = 'yes' | 'no' | 'more'

interface Content {
  type: number
  bytes: Buffer
}

export class PackCommits {
  private readonly limits: PackLimits
  private readonly hash: 'sha1' | 'sha256'
  private readonly parents = new Map<string, string[]>()
  /** The parents of all commits. */
  private readonly named = new Set<string>()
  private readonly byOffset = new Map<number, Content>()
  private readonly byId = new Map<string, Content>()
  private at = 12
  private left: number
  private count: number | null = null
  private isOver = false

  /** `idLength`: of the ids, in hexadecimal. */
  constructor(idLength: number, limits: PackLimits = packLimits) {
    this.limits = limits
    this.hash = idLength === 64 ? 'sha256' : 'sha1'
    this.left = limits.unpackedBytes
  }

  /** `pack`: its beginning, at least as much as the last time. `isWhole`: nothing comes after it. */
  async leads(pack: Buffer, { from, to, isWhole }: { from: string; to: string; isWhole: boolean }): Promise<Forward> {
    while (!this.isOver) {
      const more = this.read(pack)
      if (this.reaches(from, to)) return 'yes'
      if (more) {
        if (isWhole || pack.length >= this.limits.bytes) break
        return 'more'
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    return 'no'
  }

  /** Reads some objects; true when the next one needs bytes that are not there. */
  private read(pack: Buffer): boolean {
    if (this.count === null) {
      if (pack.length < 12) return true
      const version = pack.readUInt32BE(4)
      if (pack.toString('latin1', 0, 4) !== 'PACK' || (version !== 2 && version !== 3)) this.isOver = true
      this.count = pack.readUInt32BE(8)
    }
    for (let done = 0; done < perTurn && !this.isOver; done++) {
      if (this.byOffset.size >= Math.min(this.count, this.limits.commits)) this.isOver = true
      else if (!this.readOne(pack)) return !this.isOver
    }
    return false
  }

  private readOne(pack: Buffer): boolean {
    const start = this.at
    const head = headOf(pack, start)
    if (head === null) return false
    const { type, size } = head
    let { next } = head
    let base: Content | undefined
    if (type === offsetDelta) {
      const distance = distanceAt(pack, next)
      if (distance === null) return false
      base = this.byOffset.get(start - distance.value)
      next = distance.next
    } else if (type === refDelta) {
      const bytes = this.hash === 'sha256' ? 32 : 20
      if (pack.length < next + bytes) return false
      base = this.byId.get(pack.toString('hex', next, next + bytes))
      next += bytes
    }
    const isDelta = type === offsetDelta || type === refDelta
    // The rest of the pack are trees and files.
    if ((isDelta ? base === undefined : type !== commitType && type !== tagType) || size > mostOfOne) {
      this.isOver = true
      return true
    }
    const unpacked = unpack(pack.subarray(next), size)
    if (unpacked === 'more') return false
    const bytes =
      unpacked === 'broken' ? null : base === undefined ? unpacked.bytes : applied(base.bytes, unpacked.bytes)
    if (unpacked === 'broken' || bytes === null || (this.left -= bytes.length) < 0) {
      this.isOver = true
      return true
    }
    this.keep(start, { type: base?.type ?? type, bytes })
    this.at = next + unpacked.length
    return true
  }

  private keep(offset: number, content: Content): void {
    const { type, bytes } = content
    const kind = type === commitType ? 'commit' : 'tag'
    const id = createHash(this.hash).update(`${kind} ${bytes.length}\0`).update(bytes).digest('hex')
    this.byOffset.set(offset, content)
    this.byId.set(id, content)
    if (type !== commitType) return
    const parents = parentsIn(bytes)
    this.parents.set(id, parents)
    for (const parent of parents) this.named.add(parent)
  }

  private reaches(from: string, to: string): boolean {
    if (from !== to && !this.named.has(to)) return false
    const seen = new Set([from])
    for (const id of seen) {
      if (id === to) return true
      for (const parent of this.parents.get(id) ?? []) seen.add(parent)
    }
    return false
  }
}

/** The type of an object, and its size once it is unpacked. */
function headOf(pack: Buffer, at: number): { type: number; size: number; next: number } | null {
  let byte = pack[at]
  if (byte === undefined) return null
  const type = (byte >> 4) & 7
  let size = byte & 15
  let next = at + 1
  for (let scale = 16; byte & 0x80; scale *= 128) {
    byte = pack[next++]
    if (byte === undefined) return null
    size += (byte & 0x7f) * scale
    if (size > Number.MAX_SAFE_INTEGER / 256) break
  }
  return { type, size, next }
}

function distanceAt(pack: Buffer, at: number): { value: number; next: number } | null {
  let value = 0
  for (let next = at; next < at + 8; next++) {
    const byte = pack[next]
    if (byte === undefined) return null
    value = next === at ? byte & 0x7f : (value + 1) * 128 + (byte & 0x7f)
    if (!(byte & 0x80)) return { value, next: next + 1 }
  }
  return { value: 0, next: at + 8 }
}

function unpack(bytes: Buffer, size: number): { bytes: Buffer; length: number } | 'more' | 'broken' {
  try {
    const { buffer, engine } = inflateSync(bytes, { info: true, maxOutputLength: Math.max(1, size) }) as unknown as {
      buffer: Buffer
      engine: { bytesWritten: number }
    }
    return buffer.length === size ? { bytes: buffer, length: engine.bytesWritten } : 'broken'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR' ? 'more' : 'broken'
  }
}

/** A delta (gitformat-pack(5)); null: it does not fit. */
function applied(base: Buffer, delta: Buffer): Buffer | null {
  let at = 0
  const number = () => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = delta[at++]
      if (byte === undefined || scale > 2 ** 42) return -1
      value += (byte & 0x7f) * scale
      if (!(byte & 0x80)) return value
    }
  }
  const [from, size] = [number(), number()]
  if (from !== base.length || size < 0 || size > mostOfOne) return null
  const parts: Buffer[] = []
  let length = 0
  while (at < delta.length) {
    const code = delta[at++]!
    let part: Buffer
    if (code & 0x80) {
      const bytesOf = (bits: readonly number[]) =>
        bits.reduce((value, bit, nth) => value + (code & bit ? (delta[at++] ?? 0) * 256 ** nth : 0), 0)
      const offset = bytesOf([1, 2, 4, 8])
      const count = bytesOf([16, 32, 64]) || 0x10000
      part = base.subarray(offset, offset + count)
      if (part.length !== count) return null
    } else {
      part = delta.subarray(at, at + code)
      at += code
      if (code === 0 || part.length !== code) return null
    }
    length += part.length
    if (length > size) return null
    parts.push(part)
  }
  return length === size ? Buffer.concat(parts) : null
}

/** The lines behind the first, until one of another kind. */
function parentsIn(commit: Buffer): string[] {
  const head = commit.toString('latin1', 0, commit.indexOf('\n\n') === -1 ? commit.length : commit.indexOf('\n\n'))
  const [tree = '', ...lines] = head.split('\n')
  if (!/^tree [0-9a-f]{40,64}$/.test(tree)) return []
  const ids: string[] = []
  for (const each of lines) {
    const [, id] = /^parent ([0-9a-f]{40}|[0-9a-f]{64})$/.exec(each) ?? []
    if (id === undefined) break
    ids.push(id)
  }
  return ids
}
