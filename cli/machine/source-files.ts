import { createHash, hash } from 'node:crypto'
import { closeSync, openSync, readdirSync, readSync, realpathSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { isSourcePath, sourceKind } from '../../shared/lib/source-path.ts'
import { maxPageBytes } from '../../shared/lib/wiki-limits.ts'
import { CliError } from '../errors/cli-error.ts'

// The files of a directory that become pages of the wiki.

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

/**
 * Lists the .md, .markdown and .csv files of a directory and hashes them, ordered by their paths. A symbolic link is followed to a
 * file within the directory alone. Files whose paths cannot be names of pages are told as skipped. Fails when one cannot be read:
 * a list without it would archive its page.
 */
export function listSourceFiles(dir: string): { files: SourceFile[]; skipped: Skipped[] } {
  const root = realpathSync(dir)
  const paths: string[] = []
  const skipped: Skipped[] = []
  for (const path of walk(root, { folder: '', skipped })) {
    if (isSourcePath(path)) paths.push(path)
    else skipped.push({ path, reason: 'has a name that is no path everywhere' })
  }
  paths.sort()
  const buffer = Buffer.allocUnsafe(maxPageBytes + 1)
  const files: SourceFile[] = []
  for (const path of paths) {
    const sha256 = readThere({ path, skipped }, () => hashOf(join(root, path), buffer))
    if (sha256 !== null) files.push({ path, sha256 })
  }
  return { files, skipped }
}

/** What `read` returns; null when there is no such file or directory. */
function readThere<T>({ path, skipped }: { path: string; skipped: Skipped[] }, read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new CliError('source_unreadable', `${path} cannot be read: ${(error as Error).message}.`, { cause: error })
    // It went away meanwhile, unless this is not its name: bytes that are no UTF-8 are read as this character.
    if (path.includes('\ufffd')) skipped.push({ path, reason: 'has a name that is no UTF-8 text' })
    return null
  }
}

function* walk(root: string, { folder, skipped }: { folder: string; skipped: Skipped[] }): Generator<string> {
  const read = () => readdirSync(join(root, folder), { withFileTypes: true })
  for (const entry of readThere({ path: folder, skipped }, read) ?? []) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) {
      if (entry.name !== '.git') yield* walk(root, { folder: path, skipped })
    } else if (sourceKind(path) !== null) {
      const isLink = entry.isSymbolicLink()
      if (entry.isFile() || (isLink && leadsToFileWithin(root, join(root, path)))) yield path
    }
  }
}

function leadsToFileWithin(root: string, link: string): boolean {
  try {
    const target = realpathSync(link)
    const way = relative(root, target)
    const isOutside = way === '..' || way.startsWith(`..${sep}`) || way.startsWith(sep) || /^[A-Za-z]:/.test(way)
    return !isOutside && statSync(target).isFile()
  } catch {
    // It leads nowhere, or round in a circle.
    return false
  }
}

/** At once: nothing else goes on here, and two thousand streams take several times as long. */
function hashOf(file: string, buffer: Buffer): string {
  const handle = openSync(file, 'r')
  try {
    let length = readSync(handle, buffer)
    if (length < buffer.length) return hash('sha256', buffer.subarray(0, length))
    const whole = createHash('sha256')
    for (; length > 0; length = readSync(handle, buffer)) whole.update(buffer.subarray(0, length))
    return whole.digest('hex')
  } finally {
    closeSync(handle)
  }
}

/** Reads the text of a file as it was hashed, or says why it cannot be a page. */
export async function readSource(dir: string, { path, sha256 }: SourceFile): Promise<{ body: string } | Skipped> {
  const changed = { path, reason: 'was changed while the directory was read' }
  const bytes = await readBounded(join(realpathSync(dir), path)).catch(() => changed)
  if (bytes === null) return { path, reason: tooLarge }
  if ('reason' in bytes || createHash('sha256').update(bytes).digest('hex') !== sha256) return changed
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
