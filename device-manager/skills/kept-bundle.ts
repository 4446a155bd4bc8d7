import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleHead } from '../../shared/device/bundle.ts'
import { bundleHashText, type ListedFile } from '../../shared/lib/bundle-hash.ts'
import { bundleLimits, bundlePathsFlaw } from '../../shared/lib/bundle-path.ts'

/**
 * Files of a skill or of a plugin on this device: a folder `<state>/skills/<hash>` with the list of the files as it came (`list.json`), and the files
 * below `files/`. The folder gets its name when all of it is on the disk, so one with a name is whole. What comes from elsewhere is
 * believed as far as its hash says: nobody else's files pass for it, and no path leads out of it.
 */
export const keptIn = (bundles: string, hash: string) => {
  const root = join(bundles, hash)
  return { root, list: join(root, 'list.json'), files: join(root, 'files') }
}

/** Its files are not those that its hash names. */
export class WrongBundleError extends Error {}

const skillFileName = 'SKILL.md'
/** One of them is in each bundle: it is of a skill, or has all files of a plugin. */
const leadingFiles: ReadonlySet<string> = new Set([skillFileName, 'plugin.json', '.claude-plugin/plugin.json'])

/** Reads the list of a bundle. Throws WrongBundleError when it is not the one with this hash, or names what no bundle may hold. */
export function listOfBundle(text: string, hash: string): ListedFile[] {
  const wrong = (why: string) => new WrongBundleError(`the list of its files ${why}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw wrong('is no JSON')
  }
  const parsed = bundleHead.safeParse(value)
  if (!parsed.success) throw wrong('cannot be read')
  const { files } = parsed.data
  if (hashOf(files) !== hash) throw wrong('has another hash')
  const flaw = bundlePathsFlaw(files.map(({ path }) => path))
  if (flaw !== null) throw wrong(`has a path that ${flaw.flaw}`)
  if (files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > bundleLimits.totalBytes) throw wrong('is too large')
  if (!files.some(({ path }) => leadingFiles.has(path))) throw wrong(`has no ${skillFileName}`)
  return files
}

const hashOf = (files: readonly ListedFile[]): string =>
  createHash('sha256').update(bundleHashText(files)).digest('hex')

/** The list of a bundle that is kept, which was looked through before it was: with the same hash it is the same. Fails with the error of the file system when it is not. */
export function readList(bundles: string, hash: string): ListedFile[] {
  const text = readFileSync(keptIn(bundles, hash).list, 'utf8')
  try {
    const { files } = JSON.parse(text) as { files: ListedFile[] }
    if (hashOf(files) === hash) return files
  } catch {
    // Not even a list.
  }
  throw new WrongBundleError('the list of its files was changed on this device')
}

/** Reads a file of a bundle that is kept, and looks whether it is still what the list says. */
export function readKept(bundles: string, hash: string, file: ListedFile): Uint8Array {
  const bytes = readFileSync(join(keptIn(bundles, hash).files, file.path))
  if (bytes.length !== file.sizeBytes || createHash('sha256').update(bytes).digest('hex') !== file.sha256)
    throw new WrongBundleError(`${file.path} was changed on this device`)
  return bytes
}

/** What a folder holds is on the disk. Some file systems do not know of that for folders. */
export async function syncFolder(path: string): Promise<void> {
  let folder: FileHandle | null = null
  try {
    folder = await open(path, 'r')
    await folder.sync()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EINVAL' && code !== 'ENOTSUP' && code !== 'EISDIR') throw error
  } finally {
    await folder?.close()
  }
}
