import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inflate } from 'node:zlib'
import { readRegularFile } from './regular-file.ts'

/** A larger index is left to git: this one is read whole. */
const maxIndexBytes = 64 * 1024 * 1024
const maxCommitBytes = 1024 * 1024
const hashBytes = 20

/**
 * The tree that an index of SHA-1 objects is known to be, by its own account (the `TREE` extension of gitformat-index):
 * git notes it when it makes the tree or fills the index from it, and strikes it out with the first staged change. Null
 * when nothing is noted, or the index is of a kind that only git should read.
 */
export function treeNotedIn(index: Buffer): string | null {
  if (index.length < 12 + hashBytes || index.toString('latin1', 0, 4) !== 'DIRC') return null
  const version = index.readUInt32BE(4)
  if (version !== 2 && version !== 3) return null
  let at = 12
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    // 40 bytes of stat data, the object's id, the flags (and 2 bytes more of them), the name, 1 to 8 NULs.
    const flagsAt = at + 40 + hashBytes
    if (flagsAt + 4 > index.length) return null
    const flags = index.readUInt16BE(flagsAt)
    const nameAt = flagsAt + ((flags & 0x4000) === 0 ? 2 : 4)
    const length = flags & 0xfff
    const nameEnd = length < 0xfff ? nameAt + length : index.indexOf(0, nameAt)
    if (nameEnd < nameAt) return null
    at += Math.floor((nameEnd - at) / 8 + 1) * 8
  }
  return treeOfExtensions(index, at)
}

function treeOfExtensions(index: Buffer, from: number): string | null {
  let noted: string | null = null
  for (let at = from; at + 8 <= index.length - hashBytes;) {
    const name = index.toString('latin1', at, at + 4)
    const size = index.readUInt32BE(at + 4)
    // Written small: git must understand it to know what the entries are (a split or a sparse index).
    if (!/^[A-Z]{4}$/.test(name)) return null
    if (name === 'TREE') noted = rootOf(index.subarray(at + 8, at + 8 + size))
    at += 8 + size
  }
  return noted
}

/** The root comes first: an empty path, the number of entries (-1: struck out), that of sub-trees, and the id. */
function rootOf(extension: Buffer): string | null {
  const newline = extension.indexOf(0x0a)
  if (newline < 0 || !/^\0\d+ \d+$/.test(extension.toString('latin1', 0, newline))) return null
  const oid = extension.subarray(newline + 1, newline + 1 + hashBytes)
  return oid.length === hashBytes ? oid.toString('hex') : null
}

export async function readNotedTree(indexFile: string): Promise<string | null> {
  const found = await stat(indexFile).catch(() => null)
  if (found === null || found.size > maxIndexBytes) return null
  return treeNotedIn(await readFile(indexFile))
}

/** The tree of a commit that lies as a loose object, as new ones do; null for another. */
export async function treeOfLooseCommit(commonDir: string, commit: string): Promise<string | null> {
  const path = join(commonDir, 'objects', commit.slice(0, 2), commit.slice(2))
  try {
    // What is no file would hold up whoever reads it.
    const bytes = readRegularFile(path, { maxBytes: maxCommitBytes, followLinks: true })
    if (bytes === null) return null
    const text = (await inflateWithin(bytes, { maxOutputLength: maxCommitBytes })).toString('latin1')
    return /^commit \d+\0tree ([0-9a-f]{40})\n/.exec(text)?.[1] ?? null
  } catch {
    return null
  }
}

const inflateWithin = promisify(inflate) as (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>
