import { existsSync } from 'node:fs'
import { sinceBoot, type SinceBoot } from '../process/boot-clock.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { openConnection, pageBytes, type Connection } from './connection.ts'
import { SpoolDamagedError, toSpoolError } from './errors.ts'
import type { ExpectedRun, Salvage } from './rows.ts'
import { replaceSpool, salvage } from './salvage.ts'
import { Spool } from './spool-file.ts'
import { prepareStatements } from './statements.ts'

export { Spool } from './spool-file.ts'
export {
  SpoolBusyError,
  SpoolDamagedError,
  SpoolError,
  SpoolFullError,
  SpoolOrderError,
  SpoolReplacedError,
  SpoolUnavailableError,
} from './errors.ts'
export type { ExpectedRun, RunEnding, RunKey, RunStats, RunSummary, Salvage, SalvagedRun, SpoolRow } from './rows.ts'

export interface SpoolOptions {
  /** Pages of 16 KiB the file may have. Endings may go over it by `reservedPages`. */
  maxPageCount?: number
  reservedPages?: number
  /** Size of `<path>.reserve`, given up for endings when the disk itself is full. */
  reserveBytes?: number
  busyTimeoutMs?: number
  /**
   * Check the whole file, and set a damaged one aside and salvage it. Only the daemon does: a run host must not move the
   * file away under the others. Without it a damaged file throws SpoolDamagedError, and one that is not there
   * SpoolUnavailableError: the daemon makes it, and another one made while it sets a damaged one aside would be mixed up
   * with the new one.
   */
  repair?: boolean
  /** The trouble that a reader found with the file: with `repair` it is set aside whatever the check says. */
  damage?: string
  /** With `repair`: runs that have rows in the file, as far as is known without it. What it does not hold of them counts as lost. */
  expected?: readonly ExpectedRun[]
  world?: Pick<World, 'now'>
  sinceBoot?: SinceBoot
}

const defaults = {
  maxPageCount: (1024 * 1024 * 1024) / pageBytes,
  reservedPages: (16 * 1024 * 1024) / pageBytes,
  reserveBytes: 8 * 1024 * 1024,
  busyTimeoutMs: 2_000,
  repair: true,
  expected: [],
}
export function openSpool(path: string, options: SpoolOptions = {}): Spool {
  const whole = { ...defaults, world: realWorld, sinceBoot, ...options }
  const settings = { ...whole, mustExist: !whole.repair }
  let salvaged: Salvage | null = null
  let db: Connection
  try {
    if (settings.repair && options.damage !== undefined && existsSync(path)) throw new SpoolDamagedError(options.damage)
    if (settings.repair && settings.expected.length > 0 && !existsSync(path))
      replaceSpool(path, settings, settings.expected)
    db = openChecked(path, settings)
  } catch (error) {
    const spoolError = toSpoolError(error)
    if (!(spoolError instanceof SpoolDamagedError) || !settings.repair) throw spoolError
    try {
      salvaged = salvage(path, settings, {
        now: settings.world.now(),
        reason: spoolError.message,
        expected: settings.expected,
      })
      db = openConnection(path, settings)
    } catch (again) {
      throw toSpoolError(again)
    }
  }
  try {
    return new Spool({ path, db, salvage: salvaged, ...settings })
  } catch (error) {
    db.close()
    throw toSpoolError(error)
  }
}

function openChecked(path: string, settings: Omit<typeof defaults, 'expected'> & { mustExist: boolean }): Connection {
  const isNew = !existsSync(path)
  const db = openConnection(path, settings)
  try {
    if (settings.repair && !isNew) {
      const verdict = String(db.pragma('quick_check(1)', { simple: true }))
      if (verdict !== 'ok') throw new SpoolDamagedError(verdict)
    }
    prepareStatements(db)
    return db
  } catch (error) {
    db.close()
    // A table that is not there: what stands in page 1 is no longer ours.
    if (/no such (table|column)/.test(String(error))) throw new SpoolDamagedError(String(error), { cause: error })
    throw error
  }
}
