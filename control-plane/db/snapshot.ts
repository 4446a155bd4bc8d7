import knex, { type Knex } from 'knex'
import type BetterSqlite3 from 'better-sqlite3'
import { dialectOfDb } from './dialect.ts'
import type { Tx } from './handle.ts'

/** The database as it is at one moment, for a reader that takes long. */
export interface Snapshot {
  readonly db: Tx
  close(): Promise<void>
}

/**
 * Opens a connection of its own, on which everything that is read is as it is now, however long the reader takes. It
 * waits for no write and holds none up: on PostgreSQL it is a read-only transaction that is repeatable, on SQLite one of a reader of
 * the file beside its writer. Close it soon all the same: neither database cleans up what such a reader may still look at.
 */
export async function openSnapshot(root: Knex): Promise<Snapshot> {
  const own = await openBeside(root)
  try {
    const isSqlite = dialectOfDb(root) === 'sqlite'
    // A transaction on SQLite sees one moment, from its first statement on.
    const db = await own.transaction({ readOnly: true, ...(!isSqlite && { isolationLevel: 'repeatable read' }) })
    return {
      db,
      async close() {
        await db.rollback().catch(() => undefined)
        await own.destroy()
      },
    }
  } catch (error) {
    await own.destroy()
    throw error
  }
}

interface Configured {
  config: Knex.Config
  acquireConnection(): Promise<BetterSqlite3.Database>
  releaseConnection(connection: BetterSqlite3.Database): Promise<void>
}

async function openBeside(root: Knex): Promise<Knex> {
  const client = root.client as Configured
  const { config } = client
  const alone = { ...config, pool: { ...config.pool, min: 0, max: 1 } }
  if (dialectOfDb(root) === 'postgres') return knex(alone)
  const { filename } = config.connection as { filename: string | Buffer }
  if (typeof filename === 'string' && filename !== ':memory:')
    return knex({ ...alone, connection: { filename, options: { readonly: true } } as Knex.StaticConnectionConfig })
  // A database in memory has one connection: the reader gets a copy.
  const connection = await client.acquireConnection()
  try {
    return knex({ ...alone, connection: { filename: connection.serialize() as unknown as string } })
  } finally {
    void client.releaseConnection(connection)
  }
}
