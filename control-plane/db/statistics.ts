import type { Knex } from 'knex'
import { dialectOfDb } from './dialect.ts'
import type { SqliteClient } from './sqlite-client.ts'

/**
 * Lets SQLite measure its tables: without that it takes each index for equally narrow, and reads a whole workspace where it
 * was asked for five ids. PostgreSQL measures its tables by itself.
 *
 * SQLite says which tables are new or have grown or shrunk about tenfold since they were measured; to find none is cheap. Each
 * table is a statement of its own, which reads a bounded part of each index (`analysis_limit`), so that others have their turn
 * between two of them. Returns the number of tables that were measured.
 */
export async function measureTables(root: Knex): Promise<number> {
  if (dialectOfDb(root) === 'postgres') return 0
  const due: { optimize: string }[] = await root.raw(`pragma optimize(${onlySay | wherePlansGain | allTables})`)
  const measures = due.map(({ optimize }) => optimize).filter((statement) => !ofWordIndex.test(statement))
  for (const statement of measures) await root.raw(statement)
  if (measures.length > 0) await (root.client as SqliteClient).reopenReader()
  return measures.length
}

/** Bits of `pragma optimize`. */
const onlySay = 0x1
const wherePlansGain = 0x2
const allTables = 0x10000

/** SQLite asks for tables of the index of words each time, and no plan depends on their sizes. */
const ofWordIndex = /"search_index/
