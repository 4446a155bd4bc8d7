import { Transform, type TransformCallback } from 'node:stream'
import type { JsonVerdict } from '../../../shared/lib/json-scan.ts'
import { noMessage, noSkills, skillScan } from '../../../shared/runs/server-skills.ts'
import { ForwardRefusal } from './forward.ts'

/**
 * The turns in which the bodies of one sandbox are looked through: one piece of one body in a turn of the event loop. The system hands over
 * what 100 connections sent at once, which would take seconds in one go.
 */
export class ScanTurns {
  private last: Promise<void> = Promise.resolve()

  next(): Promise<void> {
    this.last = this.last.then(() => new Promise((resolve) => setImmediate(resolve)))
    return this.last
  }
}

/**
 * Passes the body of a POST on as it came, and breaks off before what asks for skills of the server. The proxy in the sandbox refuses this,
 * too, but a program may ask the broker by itself. Lists are not filtered here: to a program that asks so, they tell names of skills that it
 * cannot read.
 *
 * The last byte waits for the end of the message, so that a server never has the whole of one that is refused.
 */
export class SkillGuard extends Transform {
  private readonly turns: ScanTurns
  private readonly scan = skillScan()
  private held: Buffer = Buffer.alloc(0)

  constructor(turns: ScanTurns) {
    super()
    this.turns = turns
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    void this.turns.next().then(() => this.look(chunk, done))
  }

  private look(chunk: Buffer, done: TransformCallback): void {
    if (this.destroyed) return done()
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
