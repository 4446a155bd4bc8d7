import type { Readable } from 'node:stream'
import { BlobMissingError, type BlobPlace, type ByteRange, type GoneBlob, type NewBlob } from './place.ts'

/**
 * Two places while files move from one to the other. What is stored goes into the first; what is not there is looked for in the other one,
 * and what is removed goes from both. The mark of the database in either of them says that both are its own.
 */
export class TwoPlaces implements BlobPlace {
  readonly name: string
  private readonly first: BlobPlace
  private readonly other: BlobPlace

  constructor(first: BlobPlace, other: BlobPlace) {
    this.first = first
    this.other = other
    this.name = `${first.name} or ${other.name}`
  }

  put(blob: NewBlob, source: AsyncIterable<Uint8Array>): Promise<void> {
    return this.first.put(blob, source)
  }

  async open(id: string, range?: ByteRange, sizeBytes?: number): Promise<Readable> {
    try {
      return await this.first.open(id, range, sizeBytes)
    } catch (error) {
      if (!(error instanceof BlobMissingError)) throw error
    }
    try {
      return await this.other.open(id, range, sizeBytes)
    } catch (error) {
      if (!(error instanceof BlobMissingError)) throw error
      // It came into the first place since that was asked.
      return this.first.open(id, range, sizeBytes)
    }
  }

  async has(id: string): Promise<boolean> {
    return (await this.first.has(id)) || (await this.other.has(id)) || this.first.has(id)
  }

  /** From the one that others copy from first, so that nobody copies what is gone. */
  async remove(blob: GoneBlob): Promise<void> {
    await this.other.remove(blob)
    await this.first.remove(blob)
  }

  async isMarked(mark: string): Promise<boolean> {
    const marked = { first: await this.first.isMarked(mark), other: await this.other.isMarked(mark) }
    if (!marked.first && !marked.other) return false
    if (!marked.first) await this.first.mark(mark)
    if (!marked.other) await this.other.mark(mark)
    return true
  }

  async mark(mark: string): Promise<void> {
    await this.first.mark(mark)
    await this.other.mark(mark)
  }

  use(mark: string): void {
    this.first.use(mark)
    this.other.use(mark)
  }
}
