import { Transform, type TransformCallback } from 'node:stream'
import type { Redactor } from '../../../shared/lib/redact.ts'
import type { World } from '../../../shared/lib/world.ts'

/** Bytes that might begin a value are held back for so long at most: the end of an event must not wait for the next one. */
const releaseMs = 20

/** Passes an answer on until it is too long, without the values that the redactor knows. */
export class RedactingGuard extends Transform {
  private readonly options: { redactor: Redactor; world: Pick<World, 'after'> }
  private left: number
  private cancel: (() => void) | null = null

  /** `redactor`: of this answer alone. */
  constructor(options: RedactingGuard['options'], mostBytes: number) {
    super()
    this.options = options
    this.left = mostBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const { redactor, world } = this.options
    this.stop()
    this.left -= chunk.length
    if (this.left < 0) return done(new Error('the answer is too long'))
    const shown = redactor.push(chunk)
    if (redactor.isHolding) this.cancel = world.after(releaseMs, () => this.push(redactor.release()))
    done(null, shown)
  }

  override _flush(done: TransformCallback): void {
    this.stop()
    done(null, this.options.redactor.flush())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.stop()
    done(error)
  }

  private stop(): void {
    this.cancel?.()
    this.cancel = null
  }
}
