import { readFileSync } from 'node:fs'
import { inject, test } from 'vitest'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'

/** Databases for tests, migrated and empty. */

const shared = () => inject('databases')

/** A database in memory, from the image of the migrated schema. */
export function openSqlite(): Database {
  const { sqliteImage, trouble } = shared()
  if (sqliteImage === null) throw new Error(`the schema could not be migrated: ${trouble}`)
  return openDatabase({ url: ':memory:', image: readFileSync(sqliteImage) })
}

export interface PostgresDatabase extends Database {
  url: string
}

/** True where PostgreSQL is installed. */
export const hasPostgres = (): boolean => shared().postgresUrl !== null

/** A database of its own, cloned from the template; closing it removes it. */
export async function openPostgres(limits: { readMs?: number; writeMs?: number } = {}): Promise<PostgresDatabase> {
  const { name, url, postgresUrl } = await clone()
  const database = openDatabase({ url, poolSize: 8, ...limits })
  return {
    ...database,
    url,
    async close() {
      await database.close()
      await asAdmin(postgresUrl, `drop database ${name} with (force)`)
    },
  }
}

/** An empty database, for a server that makes its schema itself; closing it removes it. */
export async function emptyPostgres(): Promise<Pick<PostgresDatabase, 'url' | 'close'>> {
  const { name, url, postgresUrl } = await clone('template0')
  return { url, close: () => asAdmin(postgresUrl, `drop database ${name} with (force)`) }
}

async function clone(template = 'svc_template') {
  const { postgresUrl } = shared()
  if (postgresUrl === null) throw new Error('PostgreSQL is not installed')
  const name = `svc_${crypto.randomUUID().replaceAll('-', '')}`
  await asAdmin(postgresUrl, `create database ${name} template ${template} strategy file_copy`)
  return { name, url: postgresUrl.replace('/postgres?', `/${name}?`), postgresUrl }
}

async function asAdmin(url: string, statement: string): Promise<void> {
  const admin = openDatabase({ url, poolSize: 1 })
  try {
    await admin.root.raw(statement)
  } finally {
    await admin.close()
  }
}

/** One database per worker, emptied before each test: a clone for each would cost more than most tests. */
const postgresTest = test.extend<{ emptied: PostgresDatabase; cloned: PostgresDatabase }>({
  cloned: [
    // Vitest wants the pattern, though nothing is taken.
    // oxlint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const { url } = await clone()
      const database = openDatabase({ url, poolSize: 8 })
      await use({ ...database, url })
      // Not removed: a worker's end may come after that of the whole cluster.
      await database.close()
    },
    { scope: 'worker' },
  ],
  emptied: async ({ cloned }, use) => {
    await deleteRows(cloned)
    await use(cloned)
  },
})

async function deleteRows({ root }: Database): Promise<void> {
  const { rows } = (await root.raw(
    "select tablename from pg_tables where schemaname = 'public' and tablename <> 'schema_migrations'",
  )) as { rows: { tablename: string }[] }
  const deletes = rows.map(({ tablename }) => `delete from "${tablename}";`).join('')
  // References between tables would ask for an order.
  await root.raw(`set session_replication_role = replica; ${deletes} set session_replication_role = origin;`)
}

/** A test that must hold on SQLite and on PostgreSQL alike. */
export function onBoth(name: string, run: (database: Database) => Promise<void>): void {
  test(`${name} (sqlite)`, async () => {
    const database = openSqlite()
    try {
      await run(database)
    } finally {
      await database.close()
    }
  })
  postgresTest.skipIf(!hasPostgres())(`${name} (postgres)`, async ({ emptied }) => run(emptied))
}
