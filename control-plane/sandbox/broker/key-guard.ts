import { Transform, type TransformCallback } from 'node:stream'

/** Passes an answer on until it is too long, or until the key comes in it, of which no whole is ever passed on. */
export class KeyGuard extends Transform {
  private readonly key: Buffer
  private held = Buffer.alloc(0)
  private left: number

  constructor(key: string, mostBytes: number) {
    super()
    this.key = Buffer.from(key)
    this.left = mostBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.left -= chunk.length
    if (this.left < 0) return done(new Error('the answer is too long'))
    const seen = Buffer.concat([this.held, chunk])
    if (seen.includes(this.key)) return done(new Error('the answer holds the key'))
    // Events are passed on at once: only an end that the key begins with is held back.
    const from = this.beginning(seen)
    this.held = seen.subarray(from)
    done(null, seen.subarray(0, from))
  }

  override _flush(done: TransformCallback): void {
    done(null, this.held)
  }

  /** Returns the place from which the end of these bytes may be the beginning of the key. */
  private beginning(bytes: Buffer): number {
    for (let at = Math.max(0, bytes.length - this.key.length + 1); at < bytes.length; at++)
      if (this.key.subarray(0, bytes.length - at).equals(bytes.subarray(at))) return at
    return bytes.length
  }
}
