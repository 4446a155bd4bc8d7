/** The clients of knex, which may be extended. */
declare module 'knex/lib/dialects/better-sqlite3/index.js' {
  import type { Knex } from 'knex'
  import type BetterSqlite3 from 'better-sqlite3'

  export default class BetterSqlite3Client extends Knex.Client {
    /** Set on the client of a transaction. */
    readonly transacting?: boolean
    protected _query(
      connection: BetterSqlite3.Database,
      query: { sql: string; bindings?: readonly unknown[] },
    ): Promise<unknown>
    acquireConnection(): Promise<BetterSqlite3.Database>
    releaseConnection(connection: BetterSqlite3.Database): Promise<void>
    query(
      connection: BetterSqlite3.Database,
      query: string | { sql: string; bindings: readonly unknown[] },
    ): Promise<{ response: unknown }>
    destroy(callback?: (error?: Error) => void): Promise<void>
  }
}

declare module 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js' {
  import type { Knex } from 'knex'
  import type BetterSqlite3 from 'better-sqlite3'

  export default class SqliteTransaction {
    readonly client: Knex.Client
    readonly readOnly?: boolean
    readonly trxClient: { query(connection: BetterSqlite3.Database, sql: string): Promise<unknown> }
    constructor(
      client: Knex.Client,
      container: unknown,
      config?: { until?: number; readOnly?: boolean },
      outer?: unknown,
    )
    begin(connection: BetterSqlite3.Database): Promise<unknown>
  }
}

declare module 'knex/lib/dialects/postgres/execution/pg-transaction.js' {
  import type { Knex } from 'knex'
  import type { Client } from 'pg'

  export default class PostgresTransaction {
    readonly client: Knex.Client
    readonly trxClient: unknown
    constructor(client: Knex.Client, container: unknown, config?: object, outer?: unknown)
    begin(connection: Client): Promise<unknown>
    /** `status` 1: the transaction has ended with `value` once this is answered. */
    query(connection: Client, sql: string, status?: 1, value?: unknown): Promise<unknown>
    commit(connection: Client, value: unknown): Promise<unknown>
  }
}

declare module 'knex/lib/dialects/postgres/index.js' {
  import type { Knex } from 'knex'
  import type { Client } from 'pg'

  export default class PostgresClient extends Knex.Client {
    /** Set on the client of a transaction. */
    readonly transacting?: boolean
    acquireRawConnection(): Promise<Client>
    acquireConnection(): Promise<Client>
    releaseConnection(connection: Client): Promise<void>
    query(
      connection: Client,
      query: string | { sql: string; bindings: readonly unknown[]; options: { name?: string } },
    ): Promise<{ response: { rows: unknown[]; rowCount: number | null } }>
  }
}
