import { Transform, type TransformCallback } from 'node:stream'
import type { Redactor } from '../../../shared/lib/redact.ts'

/** Passes an answer on until it is too long, or until a value comes in it, in any form that is known to redaction. */
export class ValueGuard extends Transform {
  private readonly redactor: Redactor
  private held: Buffer = Buffer.alloc(0)
  private left: number

  /** `redactor`: of this answer alone. */
  constructor(redactor: Redactor, mostBytes: number) {
    super()
    this.redactor = redactor
    this.left = mostBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.left -= chunk.length
    if (this.left < 0) return done(new Error('the answer is too long'))
    const seen = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    const shown = this.redactor.push(chunk)
    if (!seen.subarray(0, shown.length).equals(shown)) return done(new Error('the answer holds a secret'))
    // A copy: what is held must not change with the chunk.
    this.held = Buffer.from(seen.subarray(shown.length))
    done(null, shown)
  }

  override _flush(done: TransformCallback): void {
    const shown = this.redactor.flush()
    if (this.held.equals(shown)) done(null, shown)
    else done(new Error('the answer holds a secret'))
  }
}
