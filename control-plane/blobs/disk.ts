import { close, createReadStream, fstat, open as openFile, type Stats } from 'node:fs'
import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { BlobMissingError, StorageError, wrongSize, type BlobPlace, type ByteRange, type NewBlob } from './place.ts'
import { gathered } from './pieces.ts'

/**
 * Blobs in a folder: `<folder>/<mark>/<two characters of the id>/<id>`, for their owner's eyes only.
 *
 * A blob is written to `<id>.part`, synced, renamed, and its folder is synced: whenever the power goes, there is a whole blob
 * under its name or none.
 */
export class DiskPlace implements BlobPlace {
  readonly name: string
  private readonly folder: string
  private root: string

  constructor(folder: string) {
    this.folder = folder
    this.name = `the folder ${folder}`
    this.root = folder
  }

  async put({ id }: NewBlob, source: AsyncIterable<Uint8Array>): Promise<void> {
    const path = this.pathOf(id)
    const draft = `${path}.part`
    const handle = await this.try(async () => {
      await makeFolder(dirname(path))
      return open(draft, 'w', 0o600)
    })
    try {
      await this.fill(handle, source)
      await this.try(async () => {
        await rename(draft, path)
        await syncFolder(dirname(path))
      })
    } catch (error) {
      // A sweep finds what cannot be removed now.
      await rm(draft, { force: true }).catch(() => undefined)
      throw error
    }
  }

  async open(id: string, range?: ByteRange, sizeBytes?: number): Promise<Readable> {
    const path = this.pathOf(id)
    const fd = await this.try(() => openForReading(path)).catch((error: unknown) => {
      throw isNotThere(error) ? new BlobMissingError(id) : error
    })
    if (sizeBytes !== undefined) await this.checkSizeOf(id, fd, sizeBytes)
    // A stream takes the last byte, not the end, and has none for nothing.
    const isEmpty = range !== undefined && range.end <= range.start
    const part = range === undefined || isEmpty ? {} : { start: range.start, end: range.end - 1 }
    const stream = createReadStream(path, { fd, ...part, highWaterMark: readBytes })
    if (!isEmpty) return stream
    stream.destroy()
    return Readable.from([])
  }

  async remove({ id }: { id: string }): Promise<void> {
    const path = this.pathOf(id)
    await this.try(async () => {
      await rm(`${path}.part`, { force: true })
      await rm(path, { force: true })
    })
  }

  async has(id: string): Promise<boolean> {
    return (await this.statOf(this.pathOf(id)))?.isFile() ?? false
  }

  async isMarked(mark: string): Promise<boolean> {
    return (await this.statOf(join(this.folder, mark)))?.isDirectory() ?? false
  }

  async mark(mark: string): Promise<void> {
    await this.try(() => makeFolder(join(this.folder, mark)))
  }

  use(mark: string): void {
    this.root = join(this.folder, mark)
  }

  private pathOf(id: string): string {
    return join(this.root, ...blobFolders(id))
  }

  private async checkSizeOf(id: string, fd: number, sizeBytes: number): Promise<void> {
    try {
      const { size: found } = await this.try(() => statOpen(fd))
      if (found !== sizeBytes) throw wrongSize(this.name, { id, found, sizeBytes })
    } catch (error) {
      close(fd, () => undefined)
      throw error
    }
  }

  private async statOf(path: string): Promise<Stats | null> {
    try {
      return await this.try(() => stat(path))
    } catch (error) {
      if (isNotThere(error)) return null
      throw error
    }
  }

  private async fill(handle: FileHandle, source: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const piece of gathered(source, writeBytes)) await this.try(() => writeAll(handle, piece))
      await this.try(() => handle.sync())
    } finally {
      await handle.close().catch(() => undefined)
    }
  }

  private async try<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw new StorageError(this.name, error)
    }
  }
}

/** The path of a blob below the folder of its mark. */
export const blobFolders = (id: string): [folder: string, name: string] => [id.slice(-2), id]

/** Streams of a number are a quarter faster than those of a `FileHandle`, whose reads are promises. */
const openForReading = promisify(openFile) as (path: string) => Promise<number>
const statOpen = promisify(fstat) as (fd: number) => Promise<Stats>

const writeBytes = 256 * 1024
const readBytes = 256 * 1024

/** A write may take a part of what it is given. */
async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<void> {
  let rest = piece
  while (rest.length > 0) {
    const { bytesWritten } = await handle.write(rest)
    rest = rest.subarray(bytesWritten)
  }
}

/** The folder, with the entry of each folder on the way to it synced in the one above. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await makeOne(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await makeFolder(dirname(folder))
    await makeOne(folder)
  }
}

/** Makes one folder. It is not `recursive`, which never returns where the system answers ENOENT below a folder that exists, as in /proc. */
async function makeOne(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw error
  }
  await syncFolder(dirname(folder))
}

/** Brings to the disk which files a folder has. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const isNotThere = (error: unknown): boolean =>
  error instanceof StorageError && (error.cause as NodeJS.ErrnoException).code === 'ENOENT'
