import { hash } from 'node:crypto'
import type { World } from '../../shared/lib/world.ts'

/** A write waited for its locks until its time was over. PostgreSQL says the same of a statement that it cancels. */
export class WriteTimeoutError extends Error {
  override readonly name = 'WriteTimeoutError'
  readonly code = '57014'
}

/**
 * The locks of this process, by name: whoever acquires one waits until those before it have released it, in the order in which
 * they came. Nobody holds a connection of the database while it waits here.
 */
export class LocalLocks {
  private readonly world: Pick<World, 'after'>
  /** The waiters for each name that somebody holds. */
  private readonly waiting = new Map<string, Set<() => void>>()

  constructor(world: Pick<World, 'after'>) {
    this.world = world
  }

  /** Returns the function that releases them. Names are taken in one order, so that two who want the same ones do not block each other. */
  async acquire(names: readonly string[], ms: number): Promise<() => void> {
    const taken: string[] = []
    const release = () => {
      for (const name of taken.splice(0)) this.release(name)
    }
    try {
      for (const name of [...new Set(names)].toSorted()) {
        await this.take(name, ms)
        taken.push(name)
      }
    } catch (error) {
      release()
      throw error
    }
    return release
  }

  private take(name: string, ms: number): Promise<void> | void {
    const queue = this.waiting.get(name)
    if (queue === undefined) return void this.waiting.set(name, new Set())
    return new Promise((resolve, reject) => {
      const cancel = this.world.after(ms, () => {
        queue.delete(next)
        reject(new WriteTimeoutError('a write waited for its turn for too long'))
      })
      const next = () => {
        cancel()
        resolve()
      }
      queue.add(next)
    })
  }

  private release(name: string): void {
    const queue = this.waiting.get(name)
    const [next] = queue ?? []
    if (next === undefined) return void this.waiting.delete(name)
    queue?.delete(next)
    next()
  }
}

/**
 * Waits for advisory locks that other processes may have, on PostgreSQL. To be sent before the beginning of a transaction, since one
 * sees what was committed when it asked its first question; the session keeps them until `releaseAdvisoryLocks`. Who has them already need not wait.
 */
export const acquireAdvisoryLocks = (names: readonly string[]): string =>
  [...new Set(names)]
    .toSorted()
    .map((name) => `select pg_advisory_lock(${lockKeyOf(name)});`)
    .join(' ')

/**
 * Releases the locks. The statement is sent with the commit, so that the next process has them as soon as that is done: this one may wait
 * long for a processor until it learns of it. A commit that fails keeps them for the next attempt.
 */
export const releaseAdvisoryLocks = 'select pg_advisory_unlock_all()'

/** Eight bytes of a hash, as PostgreSQL's locks are named. Two names with the same one would wait for each other, no more. */
const lockKeyOf = (name: string): bigint => BigInt.asIntN(64, BigInt(`0x${hash('sha256', name).slice(0, 16)}`))
