import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { isSourcePath, sourceKind } from '../../shared/lib/source-path.ts'
import { maxPageBytes } from '../../shared/lib/wiki-limits.ts'

/** The files of a directory that become pages of the wiki. */

export interface SourceFile {
  /** Relative to the directory, with slashes. */
  path: string
  sha256: string
}

export interface Skipped {
  path: string
  reason: string
}

/** Why a file cannot be sent. */
export const tooLarge = `has more than ${maxPageBytes.toLocaleString('en')} bytes`

/** How many files are read at once. */
const atOnce = 8

/**
 * Lists the .md, .markdown and .csv files of a directory and hashes them, ordered by their paths. A symbolic link is followed to a
 * file within the directory alone. Files whose paths cannot be names of pages are told as skipped.
 */
export async function listSourceFiles(dir: string): Promise<{ files: SourceFile[]; skipped: Skipped[] }> {
  const root = await realpath(dir)
  const paths: string[] = []
  const skipped: Skipped[] = []
  for (const path of await walk(root, '')) {
    if (isSourcePath(path)) paths.push(path)
    else skipped.push({ path, reason: 'has a name that is no path everywhere' })
  }
  paths.sort()
  const hashes = Array.from({ length: paths.length }, () => '')
  let next = 0
  const work = async () => {
    for (let index = next++; index < paths.length; index = next++)
      hashes[index] = await hashOf(join(root, paths[index]!))
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return { files: paths.map((path, index) => ({ path, sha256: hashes[index]! })), skipped }
}

async function walk(root: string, folder: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) {
      if (entry.name !== '.git') for (const inner of await walk(root, path)) found.push(inner)
    } else if (sourceKind(path) === null) continue
    else if (entry.isFile() || (entry.isSymbolicLink() && (await leadsToFileWithin(root, join(root, path)))))
      found.push(path)
  }
  return found
}

async function leadsToFileWithin(root: string, link: string): Promise<boolean> {
  try {
    const target = await realpath(link)
    const way = relative(root, target)
    const isOutside = way === '..' || way.startsWith(`..${sep}`) || way.startsWith(sep) || /^[A-Za-z]:/.test(way)
    return !isOutside && (await stat(target)).isFile()
  } catch {
    // It leads nowhere, or round in a circle.
    return false
  }
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer)
  return hash.digest('hex')
}

/** Reads the text of a file as it was hashed, or says why it cannot be a page. */
export async function readSource(dir: string, { path, sha256 }: SourceFile): Promise<{ body: string } | Skipped> {
  const bytes = await readBounded(join(await realpath(dir), path))
  if (bytes === null) return { path, reason: tooLarge }
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    return { path, reason: 'was changed while the directory was read' }
  try {
    // The mark at the beginning of some texts belongs to what was hashed.
    const body = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return body.includes('\0') ? { path, reason: 'has a NUL character' } : { body }
  } catch {
    return { path, reason: 'is no UTF-8 text' }
  }
}

/** null: it is larger than a page. */
async function readBounded(file: string): Promise<Buffer | null> {
  const handle = await open(file)
  try {
    const buffer = Buffer.alloc(maxPageBytes + 1)
    let length = 0
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
      length += bytesRead
      if (length > maxPageBytes) return null
      if (bytesRead === 0) return buffer.subarray(0, length)
    }
  } finally {
    await handle.close()
  }
}
