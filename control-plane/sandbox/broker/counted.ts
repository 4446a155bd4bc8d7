import { Transform, type TransformCallback } from 'node:stream'
import { OutboundError } from '../../outbound/outbound-error.ts'

/** Breaks off where a body is longer than it may be. */
export class Counted extends Transform {
  private left: number
  private readonly seen: (bytes: number) => void

  constructor(mostBytes: number, seen: (bytes: number) => void = () => undefined) {
    super()
    this.left = mostBytes
    this.seen = seen
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.left -= chunk.length
    this.seen(chunk.length)
    if (this.left < 0) done(new OutboundError('too_large', 'the request is larger than the broker takes'))
    else done(null, chunk)
  }
}
