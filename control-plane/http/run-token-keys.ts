import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { findServerKeyWithTime, moveServerKey, randomServerKey } from '../db/server-keys.ts'
import type { Db } from '../db/open.ts'
import { runTokenMs } from './run-token.ts'

/** The keys by which tokens of runs are signed and checked. */
export interface RunTokenKeys {
  /** Signs. */
  readonly present: Uint8Array
  /** Those by which a token may be signed that has not expired, the present one first. */
  readonly known: readonly Uint8Array[]
  /** Reads them anew, unless that was done a moment ago: somebody may have changed them. */
  refresh(): Promise<void>
}

const [presentName, beforeName] = ['run_token', 'run_token_before']

/** Every replica has the new key by then. */
export const spreadMs = 3_600_000
/** A key counts for as long after it was changed: a replica may sign with it until it has the new one. */
const keptMs = runTokenMs + spreadMs
/** A token that no key fits has them read anew, at most so often. */
const refreshMs = 1_000

/** The keys of the database. */
export class StoredRunTokenKeys implements RunTokenKeys {
  present: Uint8Array
  known: readonly Uint8Array[]
  private readonly root: Knex
  private readonly world: World
  private readAt = -Infinity

  static async read(root: Knex, world: World): Promise<StoredRunTokenKeys> {
    const keys = new StoredRunTokenKeys(root, world, await randomServerKey(root, presentName, world))
    await keys.refresh()
    return keys
  }

  private constructor(root: Knex, world: World, present: Uint8Array) {
    this.root = root
    this.world = world
    this.present = present
    this.known = [present]
  }

  async refresh(): Promise<void> {
    const now = this.world.monotonic()
    if (now - this.readAt < refreshMs) return
    this.readAt = now
    const before = await findServerKeyWithTime(this.root, beforeName)
    this.present = await randomServerKey(this.root, presentName, this.world)
    const isKept = before !== null && before.at > this.world.now() - keptMs
    this.known = [this.present, ...(isKept ? [Buffer.from(before.value, 'base64')] : [])]
  }
}

/** Has this replica sign with a new key within minutes after somebody changed it. */
export const runTokenKeysSweep = (keys: Pick<RunTokenKeys, 'refresh'>) => ({
  name: 'run_token_keys',
  everyMs: 60_000,
  run: () => keys.refresh(),
})

/** Keys that nobody changes. */
export const fixedRunTokenKeys = (present: Uint8Array): RunTokenKeys => ({
  present,
  known: [present],
  refresh: () => Promise.resolve(),
})

/**
 * Makes a new key that signs from now on; the one before is good until the last token that it signed has expired. Returns until when that
 * is (ms UTC); null, and changes nothing: an earlier one is still good.
 */
export async function changeRunTokenKey(db: Db, world: World): Promise<number | null> {
  const now = world.now()
  const before = await findServerKeyWithTime(db, beforeName)
  if (before !== null && before.at > now - keptMs) return null
  await moveServerKey(db, presentName, { to: beforeName, at: now })
  await randomServerKey(db, presentName, world)
  return now + keptMs
}
