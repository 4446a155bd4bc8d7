import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { changeRunTokenKey } from '../http/run-token-keys.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Db } from '../db/open.ts'
import { checkKey } from '../resources/secrets/add.ts'
import { VaultError, type Vault } from '../vault/vault.ts'
import { OperatorError } from './people.ts'
import { listSealed, replaceSealed, sealedColumns, type SealedColumn, type SealedRow } from './sealed-store.ts'

// The change of the key that seals secrets, while servers serve. Each value is sealed anew by itself, so whatever dies on the way leaves
// each sealed with one of the two keys, and the same command goes on with it.

interface ColumnState {
  column: string
  /** Sealed with the key of `SVC_SECRETS_KEY`. */
  present: number
  /** Sealed with that of `SVC_SECRETS_OTHER_KEY`. */
  other: number
  /** The rows that neither opens; not all of them where there are many. */
  unreadable: string[]
  unreadableCount: number
}

export interface KeysState {
  columns: ColumnState[]
  /** The number of values that still need the other key. */
  left: number
  unreadable: number
}

const perPage = 100
const mostShown = 100

/** Says with which key each sealed value is sealed; writes nothing. */
export async function readKeysState(db: Db, vault: Vault): Promise<KeysState> {
  const columns: ColumnState[] = []
  for (const column of sealedColumns) columns.push(await stateOf(db, column, vault))
  const sum = (of: (state: ColumnState) => number) => columns.reduce((all, state) => all + of(state), 0)
  return { columns, left: sum(({ other }) => other), unreadable: sum(({ unreadableCount }) => unreadableCount) }
}

async function stateOf(db: Db, column: SealedColumn, vault: Vault): Promise<ColumnState> {
  const state: ColumnState = {
    column: `${column.table}.${column.column}`,
    present: 0,
    other: 0,
    unreadable: [],
    unreadableCount: 0,
  }
  for await (const rows of sealedPages(db, column))
    for (const row of rows) {
      const bound = row.boundTo + column.purpose
      if (vault.isSealedNow(bound, row.sealed)) state.present++
      else if (opened(vault, bound, row) !== null) state.other++
      else {
        state.unreadableCount++
        if (state.unreadable.length < mostShown) state.unreadable.push(row.key)
      }
    }
  return state
}

/** Seals anew what is sealed with the other key. Returns how things are then, with the number that this call sealed. */
export async function rotateKeys(root: Knex, vault: Vault): Promise<KeysState & { sealedAnew: number }> {
  if (vault.fingerprint() === null)
    throw new OperatorError('There is no key of secrets here: set SVC_SECRETS_KEY to the new one.')
  if (vault.otherFingerprint() === null)
    throw new OperatorError('Set SVC_SECRETS_OTHER_KEY to the key before, which opens what is sealed with it.')
  await checkKey(root, vault)
  let sealedAnew = 0
  for (const column of sealedColumns)
    for await (const rows of sealedPages(root, column)) {
      const due = rows.filter((row) => !vault.isSealedNow(row.boundTo + column.purpose, row.sealed))
      // Nothing is kept of a transaction that is done again.
      if (due.length > 0) sealedAnew += await inTransaction(root, (tx) => sealAnew(tx, { column, due, vault }))
    }
  return { ...(await readKeysState(root, vault)), sealedAnew }
}

async function sealAnew(
  tx: Db,
  { column, due, vault }: { column: SealedColumn; due: readonly SealedRow[]; vault: Vault },
): Promise<number> {
  let count = 0
  for (const row of due) {
    const bound = row.boundTo + column.purpose
    const value = opened(vault, bound, row)
    // What somebody sealed meanwhile is sealed with the present key, or comes with the next call.
    if (value !== null && (await replaceSealed(tx, column, row, vault.seal(bound, value)))) count++
  }
  return count
}

async function* sealedPages(db: Db, column: SealedColumn): AsyncGenerator<SealedRow[]> {
  for (let after = ''; ;) {
    const rows = await listSealed(db, column, { after, limit: perPage })
    yield rows
    if (rows.length < perPage) return
    after = rows.at(-1)!.key
  }
}

/** Returns null when no key of this server opens it. */
function opened(vault: Vault, bound: string, { sealed }: SealedRow): string | null {
  try {
    return vault.open(bound, sealed)
  } catch (error) {
    if (error instanceof VaultError) return null
    throw error
  }
}

/** Has the tokens of runs signed with another key. The key before counts until the last token that it signed has ended. */
export async function rotateRunTokens(root: Knex, world: World): Promise<{ oldKeyEndsAt: string }> {
  const endsAt = await inTransaction(root, (tx) => changeRunTokenKey(tx, world))
  if (endsAt === null)
    throw new OperatorError(
      'This key was changed less than 25 hours ago, and tokens that the one before signed are still good. Try again later.',
    )
  return { oldKeyEndsAt: new Date(endsAt).toISOString() }
}
