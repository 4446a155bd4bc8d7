import BetterSqlite3 from 'better-sqlite3'
import type { Db } from '../db/open.ts'

/** Where the kernel reads who calls. Every request asks it, so its cost is a good part of the cost of a read. */
export interface CallerSource {
  /** The first row of a query, or undefined. */
  first(sql: string, bindings: readonly string[]): unknown
}

/** Asks through the shared handle: for PostgreSQL, and for SQLite in memory. */
export function sharedSource(db: Db): CallerSource {
  return {
    async first(sql, bindings) {
      const result: unknown = await db.raw(sql, bindings)
      // The two drivers wrap rows differently.
      return (Array.isArray(result) ? (result as unknown[]) : (result as { rows: unknown[] }).rows)[0]
    },
  }
}

/**
 * Asks through a read-only connection of its own to a SQLite file. The shared handle has one connection, which a write
 * holds for as long as it takes; this one reads what is committed beside it, with statements prepared once. A revocation
 * is seen from the moment it is committed.
 */
export function sqliteSource(file: string): CallerSource & { close(): void } {
  const connection = new BetterSqlite3(file, { readonly: true, fileMustExist: true })
  connection.pragma('busy_timeout = 5000')
  const statements = new Map<string, BetterSqlite3.Statement>()
  return {
    first(sql, bindings) {
      let statement = statements.get(sql)
      if (statement === undefined) {
        statement = connection.prepare(sql)
        statements.set(sql, statement)
      }
      return statement.get(...bindings)
    },
    close: () => void connection.close(),
  }
}
