import { createHash } from 'node:crypto'
import { appendFileSync, createReadStream, createWriteStream, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { pipeline } from 'node:stream/promises'
import { createTarPacker } from 'modern-tar'
import { entryNames, sumLine } from './contents.ts'

/** Writes an archive piece by piece, and ends it with the sums of its entries, which wait in a file beside it. */
export class ArchiveWriter {
  private readonly packer = createTarPacker()
  private readonly sumsPath: string
  private readonly mtime: Date
  private readonly written: Promise<void>

  /** `path` must not be there yet. */
  constructor(path: string, { mtime, signal }: { mtime: Date; signal: AbortSignal }) {
    this.sumsPath = `${path}.sums`
    this.mtime = mtime
    const source = Readable.fromWeb(this.packer.readable as NodeReadableStream<Uint8Array>)
    this.written = pipeline(source, createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }), { signal })
    // The next entry fails with it, and so does the end.
    this.written.catch((error: unknown) => this.packer.controller.error(error))
  }

  addText(name: string, text: string): Promise<void> {
    const bytes = Buffer.from(text)
    return this.add(name, bytes.length, [bytes])
  }

  /** Fails with `ENOENT`, and may go on with the next, when there is no such file; one that is removed meanwhile is read to its end. */
  async addFile(name: string, path: string): Promise<void> {
    const handle = await open(path, 'r')
    const { size } = await handle.stat()
    await this.add(name, size, handle.createReadStream({ highWaterMark: readBytes }))
  }

  async end(): Promise<void> {
    await this.send(entryNames.sums, statSync(this.sumsPath).size, createReadStream(this.sumsPath))
    this.packer.controller.finalize()
    await this.written
    this.removeDraft()
  }

  removeDraft(): void {
    rmSync(this.sumsPath, { force: true })
  }

  private async add(name: string, sizeBytes: number, source: Source): Promise<void> {
    const hash = createHash('sha256')
    await this.send(name, sizeBytes, source, (piece) => hash.update(piece))
    appendFileSync(this.sumsPath, `${sumLine(hash.digest('hex'), name)}\n`, { mode: 0o600 })
  }

  /** Fails when the source has more or less than that. */
  private async send(
    name: string,
    size: number,
    source: Source,
    seen: (piece: Uint8Array) => void = () => undefined,
  ): Promise<void> {
    try {
      const entry = this.packer.controller.add({ name, size, mode: 0o600, mtime: this.mtime, type: 'file' })
      const writer = entry.getWriter()
      for await (const piece of source) {
        seen(piece)
        await writer.write(piece)
      }
      await writer.close()
    } catch (error) {
      this.packer.controller.error(error)
      // What ended the stream of the archive is the cause, where it ended first.
      await this.written
      throw error
    }
  }
}

type Source = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

const readBytes = 256 * 1024
