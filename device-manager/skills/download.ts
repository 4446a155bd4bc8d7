import { createHash } from 'node:crypto'
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bundleHeadBytes, bundlesPath } from '../../shared/device/bundle.ts'
import { keptIn, listOfBundle, syncFolder, WrongBundleError } from './kept-bundle.ts'

export interface DownloadOptions {
  /** The folder of all bundles. */
  bundles: string
  hash: string
  server: string
  token: string
  /** A folder of this name beside the bundles is filled, and gets the name of the bundle at the end. */
  temporary: string
  signal: AbortSignal
}

/**
 * Asks the server for a bundle and keeps it. Returns how many bytes it has. Throws WrongBundleError when what came is not the bundle; any
 * other error says that it could not be had now. Nothing that could pass for a bundle is left where it fails, or is killed.
 */
export async function downloadBundle(options: DownloadOptions): Promise<number> {
  const { bundles, hash, server, token, temporary, signal } = options
  const url = `${server.replace(/\/+$/, '')}${bundlesPath}/${hash}`
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(url, { headers, signal, redirect: 'error' })
  if (!response.ok || response.body === null) {
    await response.body?.cancel()
    throw new Error(`the server answered ${response.status}`)
  }
  const root = join(bundles, temporary)
  await mkdir(root, { recursive: true, mode: 0o700 })
  try {
    const bytes = await fill(root, new Pieces(response.body), hash)
    await rename(root, keptIn(bundles, hash).root)
    await syncFolder(bundles)
    return bytes
  } catch (error) {
    await rm(root, { recursive: true, force: true }).catch(() => undefined)
    throw error
  }
}

async function fill(root: string, pieces: Pieces, hash: string): Promise<number> {
  const line = await pieces.line(bundleHeadBytes)
  const files = listOfBundle(line, hash)
  const folders = new Set([root])
  let total = 0
  for (const { path, sizeBytes, sha256 } of files) {
    const target = join(root, 'files', path)
    for (let at = dirname(target); !folders.has(at); at = dirname(at)) folders.add(at)
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    const digest = createHash('sha256')
    const file = await open(target, 'wx', 0o600)
    try {
      for await (const piece of pieces.exactly(sizeBytes)) {
        digest.update(piece)
        await file.writeFile(piece)
      }
      await file.sync()
    } finally {
      await file.close()
    }
    if (digest.digest('hex') !== sha256) throw new WrongBundleError(`${path} is another file`)
    total += sizeBytes
  }
  if (!(await pieces.isOver())) throw new WrongBundleError('more came than its files')
  await writeFile(join(root, 'list.json'), line, { mode: 0o600, flush: true })
  for (const folder of folders) await syncFolder(folder)
  return total
}

/** The bytes of an answer as they come, cut where they are wanted. */
class Pieces {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  async line(most: number): Promise<string> {
    let read = Buffer.alloc(0)
    for (;;) {
      const end = read.indexOf(10)
      if (end >= 0) {
        this.#rest = read.subarray(end + 1)
        return read.subarray(0, end).toString('utf8')
      }
      if (read.length > most) throw new WrongBundleError('the list of its files is too long')
      const piece = await this.#next()
      if (piece === null) throw new Error('the answer of the server broke off')
      read = Buffer.concat([read, piece])
    }
  }

  async *exactly(bytes: number): AsyncGenerator<Uint8Array> {
    for (let left = bytes; left > 0;) {
      const piece = this.#rest.length > 0 ? this.#rest : await this.#next()
      if (piece === null) throw new Error('the answer of the server broke off')
      const part = piece.subarray(0, left)
      this.#rest = piece.subarray(part.length)
      left -= part.length
      yield part
    }
  }

  async isOver(): Promise<boolean> {
    return this.#rest.length === 0 && (await this.#next()) === null
  }

  async #next(): Promise<Uint8Array | null> {
    for (;;) {
      const { done, value } = await this.#source.next()
      if (done === true) return null
      if (value.length > 0) return value
    }
  }
}
