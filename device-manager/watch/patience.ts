import type { World } from '../../shared/lib/world.ts'

/** Each call that hangs takes one of the four threads that Node has for files. */
const mayHang = 2

/**
 * Waits for calls of the file system no longer than a limit. A dead network mount answers none for hours: who hangs is not
 * asked again until the call came back, and while two hang nobody else is asked.
 */
export class Patience {
  private readonly hanging = new Set<string>()
  private readonly world: Pick<World, 'sleep'>
  private readonly limitMs: number

  constructor(world: Pick<World, 'sleep'>, limitMs: number) {
    this.world = world
    this.limitMs = limitMs
  }

  /** Null: it hangs. Rejects as `ask` does. */
  async wait<Answer extends object | string>(who: string, ask: () => Promise<Answer>): Promise<Answer | null> {
    if (this.hanging.has(who) || this.hanging.size >= mayHang) return null
    const waiting = new AbortController()
    const late = this.world.sleep(this.limitMs, waiting.signal).then(
      () => null,
      () => null,
    )
    const answer = ask()
    try {
      const first = await Promise.race([answer, late])
      if (first === null) {
        this.hanging.add(who)
        const back = () => this.hanging.delete(who)
        answer.then(back, back)
      }
      return first
    } finally {
      waiting.abort()
    }
  }
}
