import type { Readable } from 'node:stream'

// Tells which branch a git host calls the repository's own, as the first ref tells that it advertises for fetches (gitprotocol-pack(5), "Reference
// Discovery"; protocol 0).

/** The service, an empty line, and the first ref with the abilities of the host. */
const mostBytes = 64 * 1024

/** Reads no more than it takes. null: the host does not say, or has none. Throws where it is no such answer. */
export async function readOwnBranch(answer: Readable): Promise<string | null> {
  let read = Buffer.alloc(0)
  for await (const chunk of answer) {
    read = Buffer.concat([read, chunk as Buffer])
    const found = ownBranchIn(read)
    if (found !== undefined) return found
    if (read.length > mostBytes) break
  }
  throw new Error('the git host did not say what it has')
}

/** Returns the host's own branch; null: an empty repository has none; undefined: not all of the line is there. */
function ownBranchIn(bytes: Buffer): string | null | undefined {
  // An empty repository has no ref: the second empty line is the end.
  for (let at = 0, ends = 0; bytes.length >= at + 4;) {
    const digits = bytes.toString('latin1', at, at + 4)
    const length = /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : 1
    if (length > 0 && length < 4) throw new Error('the git host did not say what it has')
    if (length > 0 && bytes.length < at + length) return undefined
    const line = bytes.toString('utf8', at + 4, at + length)
    if (length === 0 && ++ends === 2) return null
    at += length === 0 ? 4 : length
    const end = line.indexOf('\0')
    if (end === -1) continue
    const [, own] = /(?:^| )symref=HEAD:refs\/heads\/(\S+)/.exec(line.slice(end + 1).trimEnd()) ?? []
    return own ?? null
  }
  return undefined
}
