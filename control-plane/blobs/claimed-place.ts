import type { Readable } from 'node:stream'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { ConfigError } from '../process/config-error.ts'
import type { Log } from '../process/log.ts'
import { claimMarked, findMark } from './claim-place.ts'
import { StorageError, type BlobPlace, type ByteRange, type GoneBlob, type NewBlob, type UsedPlace } from './place.ts'

export interface ClaimOptions {
  root: Knex
  place: BlobPlace
  world: World
  log: Log
}

/** A place that answers later is as good as away. */
const patienceMs = 5_000

/**
 * Claims the place for the database, or gives one that claims itself when it is used: a server starts while the storage of
 * files is away, answers 503 for files, and serves them from the first use after it is back. Fails with `StartError` when the
 * place is there and is not that of the database, or refuses its keys.
 */
export async function claimNowOrLater(options: ClaimOptions): Promise<UsedPlace> {
  const { root, place, log } = options
  const claimed = new ClaimedPlace(options, await findMark(root))
  try {
    await claimed.claim()
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    if (error.isRefusal) throw new ConfigError(`The server does not start: ${error.message}.`)
    log.warn({}, `${place.name} is away, so what needs files is answered 503 until it is back: ${reasonOf(error)}`)
  }
  return claimed
}

const reasonOf = ({ cause }: StorageError): string => {
  const { message, cause: below } = cause as Error
  // `fetch` says only that it failed; why stands in the cause of its error.
  return below instanceof Error ? `${message} (${below.message || (below as NodeJS.ErrnoException).code})` : message
}

/**
 *   waiting --a use, when the place has the mark--> claimed
 *
 * Uses that come together wait for one claim.
 */
class ClaimedPlace implements UsedPlace {
  readonly name: string
  private readonly options: ClaimOptions
  /** The mark as the database knew it at the start; null: the first server makes it. */
  private readonly known: string | null
  private isClaimed = false
  private wasAway = false
  private claiming: Promise<void> | null = null

  constructor(options: ClaimOptions, known: string | null) {
    this.options = options
    this.known = known
    this.name = options.place.name
  }

  async claim(): Promise<void> {
    if (this.isClaimed) return
    this.claiming ??= this.claimWithin(patienceMs).finally(() => (this.claiming = null))
    await this.claiming
  }

  /** A claim that takes longer goes on, and the next use makes another one: both do the same. */
  private async claimWithin(ms: number): Promise<void> {
    const over = new AbortController()
    const late = this.options.world.sleep(ms, over.signal).then(() => {
      throw new StorageError(this.name, new Error(`no answer within ${ms / 1_000} s`))
    })
    const claimed = this.claimOnce()
    try {
      await Promise.race([claimed, late])
    } catch (error) {
      this.wasAway = true
      throw error
    } finally {
      // Whichever of the two comes later is nobody's any more.
      for (const each of [late, claimed]) each.catch(() => undefined)
      over.abort()
    }
  }

  async put(blob: NewBlob, source: AsyncIterable<Uint8Array>): Promise<void> {
    await this.claimForUse()
    return this.options.place.put(blob, source)
  }

  async open(id: string, range?: ByteRange, sizeBytes?: number): Promise<Readable> {
    await this.claimForUse()
    return this.options.place.open(id, range, sizeBytes)
  }

  async has(id: string): Promise<boolean> {
    await this.claimForUse()
    return this.options.place.has(id)
  }

  async remove(blob: GoneBlob): Promise<void> {
    await this.claimForUse()
    return this.options.place.remove(blob)
  }

  private async claimOnce(): Promise<void> {
    const { root, place, world, log } = this.options
    await claimMarked({ root, place, world, known: this.known })
    if (this.isClaimed) return
    this.isClaimed = true
    if (this.wasAway) log.info({}, `${place.name} is back, and files are served`)
  }

  /** A server that runs does not end for a place that comes back as another one: it answers 503 and says why. */
  private async claimForUse(): Promise<void> {
    try {
      await this.claim()
    } catch (error) {
      throw error instanceof StorageError ? error : new StorageError(this.name, error)
    }
  }
}
