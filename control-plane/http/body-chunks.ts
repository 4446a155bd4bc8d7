import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { World } from '../../shared/lib/world.ts'
import { slowestBytesPerS } from './body.ts'

/**
 * The chunks of a body, one at a time: nothing is read while the one before is worked on. The sender has its time while
 * it is waited for, and none is counted while others make it wait.
 */
export class BodyChunks {
  private readonly request: IncomingMessage
  private readonly source: Readable
  private readonly world: World
  private readonly chunks: Buffer[] = []
  private leftMs: number
  private failure: Error | null = null
  private isEnded = false
  private wake: (() => void) | null = null

  constructor(request: IncomingMessage, options: { inflate: Readable | null; graceMs: number; world: World }) {
    this.request = request
    this.source = options.inflate ?? request
    this.world = options.world
    this.leftMs = options.graceMs
    this.source.pause()
    this.source.on('data', this.onData).once('end', this.onEnd).once('error', this.onFailure)
    if (options.inflate !== null) {
      request.on('data', this.count).once('error', this.onFailure)
      request.pipe(options.inflate as never)
    }
    request.once('close', this.onClose)
    if (request.destroyed) this.onClose()
  }

  /** The next chunk; null after the last. Fails when the body is cut off, cannot be unpacked, or comes too slowly. */
  async next(): Promise<Buffer | null> {
    if (this.chunks.length === 0 && !this.isEnded && this.failure === null) await this.arrival()
    const chunk = this.chunks.shift()
    if (chunk !== undefined) return chunk
    if (this.failure !== null) throw this.failure
    return null
  }

  /** Stops reading for good; what still comes is thrown away. */
  close(): void {
    this.source.off('data', this.onData).off('end', this.onEnd).off('error', this.onFailure)
    this.request.off('data', this.count).off('error', this.onFailure).off('close', this.onClose)
    if (this.source !== this.request) {
      this.request.unpipe()
      // Unpacking may fail once more on its way out.
      this.source.on('error', () => undefined)
      this.source.destroy()
    }
    this.request.resume()
  }

  private async arrival(): Promise<void> {
    const askedAt = this.world.monotonic()
    const stopTimer = this.world.after(Math.max(1, Math.ceil(this.leftMs)), () => this.onFailure(new TooSlowError()))
    const arrived = new Promise<void>((resolve) => (this.wake = resolve))
    this.source.resume()
    await arrived
    stopTimer()
    this.leftMs -= this.world.monotonic() - askedAt
  }

  private readonly onData = (chunk: Buffer): void => {
    this.source.pause()
    this.chunks.push(chunk)
    if (this.source === this.request) this.count(chunk)
    this.wake?.()
  }

  private readonly count = (chunk: Buffer): void => {
    this.leftMs += (chunk.length / slowestBytesPerS) * 1_000
  }

  private readonly onEnd = (): void => {
    this.isEnded = true
    this.wake?.()
  }

  private readonly onFailure = (error: Error): void => {
    this.failure ??= error
    this.wake?.()
  }

  private readonly onClose = (): void => {
    if (!this.request.readableEnded) this.onFailure(new Error('the request was cut off'))
  }
}

export class TooSlowError extends Error {}
