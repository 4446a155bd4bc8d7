import { z } from 'zod'
import { int, text } from './columns.ts'
import { dialectOfDb } from './dialect.ts'
import type { Db } from './handle.ts'

export interface TableSize {
  table: string
  /** The room that it takes, with its indexes. */
  bytes: number
}

const size = z.object({ table: text, bytes: int })

/** PostgreSQL knows the sizes of its files. `pg_total_relation_size` has indexes and what is kept aside of long values. */
const ofFiles = `select relname as "table", pg_total_relation_size(oid) as bytes from pg_class
  where relkind = 'r' and relnamespace = current_schema()::regnamespace order by relname`

/** SQLite looks at each page of the file once, without what is written on it. What serves a virtual table has its name before its own. */
const ofPages = `select coalesce(sqlite_schema.tbl_name, pages.name) as "table", sum(pages.pgsize) as bytes
  from dbstat('main', 1) as pages left join sqlite_schema on sqlite_schema.name = pages.name
  group by 1 order by 1`

/** Lists the tables with the room that each takes. Empty pages of a SQLite file belong to none. */
export async function listTableSizes(db: Db): Promise<TableSize[]> {
  const isSqlite = dialectOfDb(db) === 'sqlite'
  const found: unknown = await db.raw(isSqlite ? ofPages : ofFiles)
  const rows = isSqlite ? (found as unknown[]) : (found as { rows: unknown[] }).rows
  return rows.map((row) => size.parse(row))
}

/** Returns the bytes of the whole database, with what is free in it. */
export async function measureDatabase(db: Db): Promise<number> {
  const isSqlite = dialectOfDb(db) === 'sqlite'
  const sql = isSqlite
    ? 'select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()'
    : 'select pg_database_size(current_database()) as bytes'
  const found: unknown = await db.raw(sql)
  const [row] = isSqlite ? (found as unknown[]) : (found as { rows: unknown[] }).rows
  return z.object({ bytes: int }).parse(row).bytes
}
