import { copyFileSync, readFileSync } from 'node:fs'
import { inject, test } from 'vitest'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { deleteRows, resetDatabase, schemaOf, SpareDatabases } from './spare-databases.ts'

// Databases for tests, migrated and empty.

const shared = () => inject('databases')

/**
 * The limits of statements, unless a test is about limits. No statement here takes long by itself; a disk that stands still for seconds
 * makes any of them late, and what hangs is ended by the limit of its test.
 */
export const patient = { readMs: 40_000, writeMs: 40_000 } as const

/** A database in memory, or in this new file, from the image of the migrated schema. */
export function openSqlite(file?: string): Database {
  const { memoryImage, trouble } = shared()
  if (memoryImage === null) throw new Error(`the schema could not be migrated: ${trouble}`)
  if (file !== undefined) {
    copyFileSync(memoryImage, file)
    return openDatabase({ url: file })
  }
  return openDatabase({ url: ':memory:', image: readFileSync(memoryImage) })
}

export interface PostgresDatabase extends Database {
  url: string
}

/** True where PostgreSQL is installed. */
export const hasPostgres = (): boolean => shared().postgresUrl !== null

/** A database like the template, as long as it is open nobody else's. */
export async function openPostgres(limits: { readMs?: number; writeMs?: number } = {}): Promise<PostgresDatabase> {
  const spare = new SpareDatabases(shared().folder)
  const name = spare.take() ?? (await clone())
  const url = addressOf(name)
  const database = openDatabase({ url, poolSize: 8, ...patient, ...limits })
  return {
    ...database,
    url,
    async close() {
      await database.close()
      // A server that runs as a program connects anew when its connections are cut, into what another test has by then.
      const hasPrograms = inject('programs') !== undefined
      if (!hasPrograms && (await isLikeTemplate(url))) spare.give(name)
      else await drop(name)
    },
  }
}

/** Empties it; false when a test has changed more of it than rows, or so much that it cannot be asked. */
async function isLikeTemplate(url: string): Promise<boolean> {
  const { template } = shared()
  const database = openDatabase({ url, poolSize: 1, ...patient })
  try {
    await resetDatabase(database.root, template!.tables)
    return (await schemaOf(database.root)) === template!.schema
  } catch {
    return false
  } finally {
    await database.close()
  }
}

/** An empty database, for a server that makes its schema itself; closing it removes it. */
export async function emptyPostgres(): Promise<Pick<PostgresDatabase, 'url' | 'close'>> {
  const name = await clone('template0')
  return { url: addressOf(name), close: () => drop(name) }
}

async function clone(template = 'svc_template'): Promise<string> {
  const name = `svc_${crypto.randomUUID().replaceAll('-', '')}`
  await asAdmin(`create database ${name} template ${template} strategy file_copy`)
  return name
}

const drop = (name: string) => asAdmin(`drop database ${name} with (force)`)

const addressOf = (name: string) => adminUrl().replace('/postgres?', `/${name}?`)

function adminUrl(): string {
  const { postgresUrl } = shared()
  if (postgresUrl === null) throw new Error('PostgreSQL is not installed')
  return postgresUrl
}

async function asAdmin(statement: string): Promise<void> {
  const admin = openDatabase({ url: adminUrl(), poolSize: 1, ...patient })
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
      const url = addressOf(await clone())
      const database = openDatabase({ url, poolSize: 8, ...patient })
      await use({ ...database, url })
      // Not removed: a worker's end may come after that of the whole cluster.
      await database.close()
    },
    { scope: 'worker' },
  ],
  emptied: async ({ cloned }, use) => {
    await deleteRows(cloned.root)
    await use(cloned)
  },
})

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
