import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import { databaseNow } from './dialect.ts'

/** Differences up to this are left as they are: the way to the database and back takes a part of it. */
const toleranceMs = 1_000
/** The operator is told of a difference from this on. */
const warnMs = 5_000
const everyMs = 30_000
/** The number of times that the database is asked for its time. The answer that came fastest counts. */
const samples = 3

/**
 * The clock of a server that shares its database: its own, set right by the database's. Replicas compare times that others
 * wrote (heartbeats of links, ends of sign-ins, leases), so they need one clock, and the database's is the one that all have.
 *
 * On SQLite the database has no clock of its own, and nothing is set right.
 */
export class DatabaseClock {
  /** The world with this clock. */
  readonly world: World
  private readonly own: World
  private readonly root: Knex
  private readonly log: Log
  private offset = 0
  private told = 0
  private cancel: (() => void) | null = null
  private isStopped = false

  constructor({ root, world, log }: { root: Knex; world: World; log: Log }) {
    this.root = root
    this.own = world
    this.log = log
    this.world = { ...world, now: () => world.now() + this.offset }
  }

  /** The milliseconds by which the database's clock is ahead of this machine's. */
  get offsetMs(): number {
    return this.offset
  }

  /** Resolves when the clock is set right. Fails when the database cannot be asked. */
  async start(): Promise<void> {
    await this.measure()
    this.measureLater()
  }

  stop(): void {
    this.isStopped = true
    this.cancel?.()
    this.cancel = null
  }

  private measureLater(): void {
    if (this.isStopped) return
    this.cancel = this.own.after(everyMs, () => {
      // A database that is away is told of elsewhere; the last difference holds meanwhile.
      void this.measure()
        .catch(() => undefined)
        .then(() => this.measureLater())
    })
  }

  private async measure(): Promise<void> {
    let best: { tookMs: number; offsetMs: number } | null = null
    for (let time = 0; time < samples; time++) {
      const [begun, at] = [this.own.monotonic(), this.own.now()]
      const there = await databaseNow(this.root)
      if (there === null) return
      const tookMs = this.own.monotonic() - begun
      if (best === null || tookMs < best.tookMs) best = { tookMs, offsetMs: Math.round(there - at - tookMs / 2) }
    }
    if (best !== null) this.set(best.offsetMs)
  }

  private set(offsetMs: number): void {
    // Small changes are those of the way: following them would move the time back and forth.
    if (Math.abs(offsetMs - this.offset) <= toleranceMs) return
    this.offset = Math.abs(offsetMs) <= toleranceMs ? 0 : offsetMs
    const isOff = Math.abs(this.offset) > warnMs
    if (isOff && Math.abs(this.offset - this.told) > warnMs) {
      const seconds = Math.round(Math.abs(this.offset) / 1_000)
      const way = this.offset < 0 ? 'ahead of' : 'behind'
      this.log.warn(
        { offsetMs: this.offset },
        `the clock of this machine is ${seconds} s ${way} the database's, which counts; set it right, for example by NTP`,
      )
    } else if (!isOff && this.told !== 0)
      this.log.info({}, "the clock of this machine agrees with the database's again")
    this.told = isOff ? this.offset : 0
  }
}
