import { createHash } from 'node:crypto'

/** One path of a git index: as the tree before had it, or new (known by its path and mode alone). */
export interface IndexEntry {
  /** latin1 text of the path's bytes. */
  path: string
  mode: string
  /** null for a path that is new. */
  oid: string | null
}

const emptyBlob = {
  sha1: 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391',
  sha256: '473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813',
} as const

const extended = 0x4000
const intentToAdd = 0x2000

/**
 * An index file of just these paths (format version 3, gitformat-index). It has no stat data, so git compares every
 * path's content; new paths are marked as intended to be added, which makes `git diff` show them as added. By this one
 * git process over the changed paths alone makes the whole patch, whatever the size of the repository.
 */
export function renderIndex(entries: readonly IndexEntry[], objectFormat: 'sha1' | 'sha256'): Buffer {
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const header = Buffer.alloc(12)
  header.write('DIRC', 'latin1')
  header.writeUInt32BE(3, 4)
  header.writeUInt32BE(sorted.length, 8)
  const body = Buffer.concat([header, ...sorted.map((entry) => renderEntry(entry, objectFormat))])
  return Buffer.concat([body, createHash(objectFormat).update(body).digest()])
}

function renderEntry(entry: IndexEntry, objectFormat: 'sha1' | 'sha256'): Buffer {
  const name = Buffer.from(entry.path, 'latin1')
  const stats = Buffer.alloc(40)
  stats.writeUInt32BE(Number.parseInt(entry.mode, 8), 24)
  const oid = Buffer.from(entry.oid ?? emptyBlob[objectFormat], 'hex')
  const isNew = entry.oid === null
  const flags = Buffer.alloc(isNew ? 4 : 2)
  flags.writeUInt16BE(Math.min(name.length, 0xfff) | (isNew ? extended : 0), 0)
  if (isNew) flags.writeUInt16BE(intentToAdd, 2)
  const length = stats.length + oid.length + flags.length + name.length
  // One to eight NUL bytes, so that the next entry begins at a multiple of eight.
  return Buffer.concat([stats, oid, flags, name, Buffer.alloc(8 - (length % 8))])
}
