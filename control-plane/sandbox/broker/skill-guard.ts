import { Transform, type TransformCallback } from 'node:stream'
import type { JsonVerdict } from '../../../shared/lib/json-scan.ts'
import { noMessage, noSkills, skillScan } from '../../../shared/runs/server-skills.ts'
import { ForwardRefusal } from './forward.ts'

/**
 * Passes the body of a POST on as it came, and breaks off before what asks for skills of the server. The proxy in the sandbox refuses this,
 * too, but a program may ask the broker by itself. Lists are not filtered here: to a program that asks so, they tell names of skills that it
 * cannot read.
 *
 * The last byte waits for the end of the message, so that a server never has the whole of one that is refused.
 */
export class SkillGuard extends Transform {
  private readonly scan = skillScan()
  private held: Buffer = Buffer.alloc(0)

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const refusal = refusalOf(this.scan.push(chunk))
    if (refusal !== null || chunk.length === 0) return done(refusal)
    this.push(this.held)
    this.push(chunk.subarray(0, -1))
    // A copy: it must not keep the chunk.
    this.held = Buffer.from(chunk.subarray(-1))
    done()
  }

  override _flush(done: TransformCallback): void {
    const refusal = refusalOf(this.scan.end())
    if (refusal === null) done(null, this.held)
    else done(refusal)
  }
}

function refusalOf(verdict: JsonVerdict): ForwardRefusal | null {
  if (verdict === 'fine') return null
  return new ForwardRefusal(verdict === 'found' ? noSkills : noMessage)
}
