import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import {
  openSpool,
  SpoolDamagedError,
  SpoolReplacedError,
  SpoolUnavailableError,
  type ExpectedRun,
  type Salvage,
  type Spool,
  type SpoolOptions,
} from './spool.ts'

/** The daemon's part of the spool; appending to it is the run hosts' work. */
export interface DaemonSpool extends Pick<
  Spool,
  | 'read'
  | 'ack'
  | 'setBack'
  | 'settle'
  | 'end'
  | 'stats'
  | 'ending'
  | 'endedAgoMs'
  | 'runs'
  | 'remove'
  | 'freeBytes'
  | 'isLocked'
> {
  /** Nothing that was in it was lost since this daemon started: an ending that is not there was not written. */
  readonly isWhole: boolean
}

export interface StandingSpoolOptions {
  path: string
  world: Pick<World, 'now' | 'monotonic'>
  settings: Pick<SpoolOptions, 'maxPageCount' | 'reserveBytes'>
  /** No daemon was here before, so there is no file to be missed. */
  isFirst: boolean
  /** What is known of the runs without it. */
  expected(): readonly ExpectedRun[]
  /** Another file is in use from now on. Called within the call that noticed what was wrong with the one before. */
  onOpenedAnew(why: string, salvage: Salvage | null): void
}

/** A damaged file that is wrong again so soon is not set right again: it would be set aside for ever. */
const againMs = 10_000

/**
 * The spool as the daemon holds it, for as long as it lives: when the file turns out damaged, or another one stands in its
 * place, it is set right, opened anew, and the call is made again. Without that a run whose rows cannot be read would
 * stay `running` until somebody restarts the daemon.
 *
 *     open -- damaged: set aside and salvaged; gone or replaced: opened or made -->  open
 *     open -- that fails (no disk, no folder) --> closed, tried again by the calls that follow
 */
export class StandingSpool implements DaemonSpool {
  /** The salvage when the daemon opened it; null: there was none to do. */
  readonly salvage: Salvage | null
  readonly #options: StandingSpoolOptions
  #spool: Spool | null
  /** Why it has to be opened anew. */
  #trouble: SpoolDamagedError | SpoolReplacedError | null = null
  #openedAt = Number.NEGATIVE_INFINITY
  #isWhole: boolean

  constructor(options: StandingSpoolOptions) {
    this.#options = options
    this.#isWhole = options.isFirst || existsSync(options.path)
    this.#spool = this.#open(null)
    this.salvage = this.#spool.salvage
    if (this.salvage) this.#isWhole = false
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  read(...args: Parameters<Spool['read']>): ReturnType<Spool['read']> {
    return this.#on((spool) => spool.read(...args))
  }
  ack(...args: Parameters<Spool['ack']>): void {
    this.#on((spool) => spool.ack(...args))
  }
  setBack(...args: Parameters<Spool['setBack']>): void {
    this.#on((spool) => spool.setBack(...args))
  }
  settle(...args: Parameters<Spool['settle']>): void {
    this.#on((spool) => spool.settle(...args))
  }
  end(...args: Parameters<Spool['end']>): void {
    this.#on((spool) => spool.end(...args))
  }
  stats(...args: Parameters<Spool['stats']>): ReturnType<Spool['stats']> {
    return this.#on((spool) => spool.stats(...args))
  }
  ending(...args: Parameters<Spool['ending']>): ReturnType<Spool['ending']> {
    return this.#on((spool) => spool.ending(...args))
  }
  endedAgoMs(...args: Parameters<Spool['endedAgoMs']>): number | null {
    return this.#on((spool) => spool.endedAgoMs(...args))
  }
  runs(): ReturnType<Spool['runs']> {
    return this.#on((spool) => spool.runs())
  }
  remove(...args: Parameters<Spool['remove']>): void {
    this.#on((spool) => spool.remove(...args))
  }
  freeBytes(): number | null {
    return this.#on((spool) => spool.freeBytes())
  }
  isLocked(): boolean {
    return this.#on((spool) => spool.isLocked())
  }

  /** A run host finds another file or none at the path: the daemon's own calls may notice that much later. */
  check(): void {
    try {
      this.freeBytes()
    } catch {
      // The calls that follow try again, and say what is wrong.
    }
  }

  /** A run host met damage that the daemon's own calls may never touch. */
  distrust(why: string): void {
    const before = this.#openedAt
    this.check()
    // What the host read was not this file, or is set right by now.
    if (this.#openedAt !== before) return
    const damage = new SpoolDamagedError(why)
    if (this.#isTooSoonFor(damage)) return
    this.#trouble ??= damage
    try {
      this.#openAnew()
    } catch {
      // The calls that follow try again, and say what is wrong.
    }
  }

  close(): void {
    this.#spool?.close()
    this.#spool = null
  }

  #on<Result>(work: (spool: Spool) => Result): Result {
    if (this.#trouble === null && this.#spool !== null) {
      try {
        return work(this.#spool)
      } catch (error) {
        if (!(error instanceof SpoolDamagedError || error instanceof SpoolReplacedError)) throw error
        if (this.#isTooSoonFor(error)) throw error
        this.#trouble = error
      }
    }
    return work(this.#openAnew())
  }

  #openAnew(): Spool {
    const { path, world } = this.#options
    const trouble = this.#trouble
    // A folder that somebody removed, with all that this device is, does not come back by itself.
    if (trouble === null || this.#isTooSoonFor(trouble) || !existsSync(dirname(path)))
      throw new SpoolUnavailableError(`the spool is closed${trouble === null ? '' : `: ${trouble.message}`}`)
    this.#openedAt = world.monotonic()
    this.#isWhole = false
    this.close()
    const spool = this.#open(trouble instanceof SpoolDamagedError ? trouble.message : null)
    this.#spool = spool
    this.#trouble = null
    this.#options.onOpenedAnew(trouble.message, spool.salvage)
    return spool
  }

  #open(damage: string | null): Spool {
    const { path, world, settings } = this.#options
    const expected = this.#options.expected()
    return openSpool(path, { ...settings, repair: true, world, expected, ...(damage !== null && { damage }) })
  }

  #isTooSoonFor(trouble: Error): boolean {
    return trouble instanceof SpoolDamagedError && this.#options.world.monotonic() - this.#openedAt < againMs
  }
}
