import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { skillFile, skillLimits, type BundleFileInput } from '../../../shared/api/skill-fields.ts'
import { bundleHashText } from '../../../shared/lib/bundle-hash.ts'
import { bundlePathsFlaw } from '../../../shared/lib/bundle-path.ts'
import type { BundleFile } from './bundle-store.ts'

/** Files as they are kept: sorted, decoded, hashed. */
export interface DecodedBundle {
  bundleHash: string
  files: readonly BundleFile[]
  /** The bytes of the files, in the order of `files`. */
  contents: readonly Uint8Array[]
  instructions: string
}

export type Decoded = { bundle: DecodedBundle; flaw: null } | { bundle: null; flaw: { param: string; message: string } }
export interface RawFile {
  path: string
  bytes: Uint8Array
  executable: boolean
}

/** The number of bytes that are read or hashed before others have their turn. */
const turnBytes = 1024 * 1024

class LongWork {
  #bytes = 0

  /** Called before so many bytes are worked on. */
  async pauseBefore(bytes: number): Promise<void> {
    this.#bytes += bytes
    if (this.#bytes < turnBytes) return
    this.#bytes = 0
    await setImmediate()
  }
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Reads the files of a request. Others have their turn meanwhile. */
export async function decodeBundle(sent: readonly BundleFileInput[]): Promise<Decoded> {
  const { files, flaw } = await decodeFiles(sent, skillLimits.files)
  return files === null ? { bundle: null, flaw } : checkBundle(files)
}

type DecodedFiles = { files: RawFile[]; flaw: null } | { files: null; flaw: { param: string; message: string } }

/** Reads the files of a request of which no skill is made as they are. Others have their turn meanwhile. */
export async function decodeFiles(sent: readonly BundleFileInput[], most: number): Promise<DecodedFiles> {
  const refused = (flaw: string, param?: string): DecodedFiles => ({ files: null, flaw: flawOf(flaw, param) })
  if (sent.length > most) return refused(`holds more than ${most} files`)
  const files: RawFile[] = []
  const work = new LongWork()
  for (const [at, { path, content, contentBase64, executable }] of sent.entries()) {
    await work.pauseBefore((content ?? contentBase64 ?? '').length)
    const param = `bundle.files.${at}`
    if ((content === undefined) === (contentBase64 === undefined))
      return refused('must have either content or contentBase64', param)
    if (contentBase64 !== undefined && (contentBase64.length % 4 !== 0 || !base64.test(contentBase64)))
      return refused('is not base64', `${param}.contentBase64`)
    const bytes = content === undefined ? Buffer.from(contentBase64!, 'base64') : Buffer.from(content, 'utf8')
    files.push({ path, bytes, executable })
  }
  return { files, flaw: null }
}

/** Checks files of any source. Others have their turn meanwhile. */
export async function checkBundle(given: readonly RawFile[]): Promise<Decoded> {
  const flaw = boundsFlaw(given)
  if (flaw !== null) return { bundle: null, flaw }
  const leading = given.find(({ path }) => path === skillFile)
  if (leading === undefined) return flawed(`has no ${skillFile}`)
  if (leading.bytes.length > skillLimits.instructionBytes)
    return flawed(`has a ${skillFile} of more than ${skillLimits.instructionBytes} bytes`)
  let instructions: string
  try {
    instructions = new TextDecoder('utf-8', { fatal: true }).decode(leading.bytes)
  } catch {
    return flawed(`has a ${skillFile} that is not UTF-8`)
  }
  return { bundle: { ...(await hashFiles(given)), instructions }, flaw: null }
}

/** Returns why no bundle holds these files, whatever is in them; null: one may. */
export function boundsFlaw(given: readonly RawFile[]): { param: string; message: string } | null {
  if (given.length > skillLimits.files) return flawOf(`holds more than ${skillLimits.files} files`)
  const flaw = pathsFlaw(given.map(({ path }) => path))
  const totalBytes = given.reduce((sum, { bytes }) => sum + bytes.length, 0)
  if (flaw !== null || totalBytes <= skillLimits.totalBytes) return flaw
  return flawOf(`has more than ${skillLimits.totalBytes} bytes`)
}

export type HashedFiles = Omit<DecodedBundle, 'instructions'>

/** The files as they are kept. Others have their turn meanwhile. */
export async function hashFiles(given: readonly RawFile[]): Promise<HashedFiles> {
  const sorted = given.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const files = await listedFiles(sorted)
  return { bundleHash: hashOfFiles(files), files, contents: sorted.map(({ bytes }) => bytes) }
}

/** The files as a list has them, in the same order. Others have their turn meanwhile. */
export async function listedFiles(given: readonly RawFile[]): Promise<BundleFile[]> {
  const files: BundleFile[] = []
  const work = new LongWork()
  for (const { path, bytes, executable } of given) {
    await work.pauseBefore(bytes.length)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    files.push({ path, sizeBytes: bytes.length, sha256, executable })
  }
  return files
}

const flawOf = (flaw: string, param = 'bundle.files') => ({ param, message: `The bundle ${flaw}.` })
const flawed = (flaw: string): Decoded => ({ bundle: null, flaw: flawOf(flaw) })

/** Returns why these paths are not taken together; null: they are. */
export function pathsFlaw(paths: readonly string[]): { param: string; message: string } | null {
  const wrong = bundlePathsFlaw(paths)
  const shown = wrong && JSON.stringify(wrong.path.slice(0, 100))
  return wrong && { param: 'bundle.files', message: `The path ${shown} ${wrong.flaw}.` }
}

/** The hash of a bundle: over the list of its files, sorted by path. */
export const hashOfFiles = (files: readonly BundleFile[]): string =>
  createHash('sha256').update(bundleHashText(files)).digest('hex')

/** Finds where the content of a file lies in the blob of its bundle, as an offset in bytes; null: it has no such file. */
export function rangeOfFile(files: readonly BundleFile[], path: string): { start: number; file: BundleFile } | null {
  let start = 0
  for (const file of files) {
    if (file.path === path) return { start, file }
    start += file.sizeBytes
  }
  return null
}

export const totalOf = (files: readonly BundleFile[]): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)

/** null: it is no text. A text that is cut may end within a character, which is left out. */
export function shownText(bytes: Uint8Array, isCut: boolean): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut })
  } catch {
    return null
  }
}
