import type { World } from '../../shared/lib/world.ts'
import type { Log } from './log.ts'

const foldedMs = 60_000

interface Folded {
  /** Lines that were not written since the last one. */
  times: number
  write: (times: number) => void
}

export interface FoldOptions {
  world: Pick<World, 'after'>
  /** Returns what failed, where each request and sweep would say the same of it; null: every line is written. */
  kindOf: (error: unknown) => string | null
}

/**
 * A log that writes the same failure (its message and its kind) at once, and from then on a line a minute that says how many
 * `times` it came. While a database or a bucket is away everything that happens fails alike, and would fill the disk of the log.
 */
export function foldFailures(log: Log, { world, kindOf }: FoldOptions): Log {
  const folded = new Map<string, Folded>()
  const lookAgain = (key: string, entry: Folded) => {
    world.after(foldedMs, () => {
      if (entry.times === 0) return void folded.delete(key)
      entry.write(entry.times)
      entry.times = 0
      lookAgain(key, entry)
    })
  }
  const tell = (write: (more: object) => void, fields: object, message: string) => {
    const kind = 'err' in fields ? kindOf(fields.err) : null
    if (kind === null) return write({})
    const key = `${kind} ${message}`
    const writeTimes = (times: number) => write({ times })
    const known = folded.get(key)
    if (known !== undefined) {
      known.times++
      known.write = writeTimes
      return
    }
    write({})
    const entry = { times: 0, write: writeTimes }
    folded.set(key, entry)
    lookAgain(key, entry)
  }
  const over = (inner: Log): Log => ({
    debug: (fields, message) => inner.debug(fields, message),
    info: (fields, message) => inner.info(fields, message),
    warn: (fields, message) => tell((more) => inner.warn({ ...fields, ...more }, message), fields, message),
    error: (fields, message) => tell((more) => inner.error({ ...fields, ...more }, message), fields, message),
    child: (fields) => over(inner.child(fields)),
  })
  return over(log)
}
