declare module 'knex/lib/dialects/better-sqlite3/index.js' {
  import type { Knex } from 'knex'
  import type BetterSqlite3 from 'better-sqlite3'

  /** The client of knex for SQLite, which may be extended. */
  export default class BetterSqlite3Client extends Knex.Client {
    protected _query(
      connection: BetterSqlite3.Database,
      query: { sql: string; bindings?: readonly unknown[] },
    ): Promise<unknown>
  }
}
