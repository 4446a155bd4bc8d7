import { existsSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { z } from 'zod'
import { dialectOf } from './dialect.ts'
import { appliedVersions } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import type { Migration } from './migrations/migration.ts'
import { openDatabase } from './open.ts'

/**
 * The last release, and the newest migration that it knows. Migrations are safe under the release before theirs
 * (CONTRIBUTING.md), and under no earlier one.
 */
export const previousRelease = { version: '0.1.0', schema: 15 } as const

export interface SchemaDifference {
  /** The newest migration that the database has; null: none, as of one that is not there yet. */
  schema: number | null
  /** The newest that this program knows. */
  programSchema: number
  pending: Pick<Migration, 'version' | 'name'>[]
  /** Whether servers of the previous release may go on while a server of this one makes what is pending. */
  previousRelease: { version: string; mayGoOn: boolean }
}

/** Compares the schema of a database with that of this program, and writes nothing. */
export async function checkSchema(url: string, steps: readonly Migration[] = migrations): Promise<SchemaDifference> {
  const known = await (dialectOf(url) === 'postgres' ? versionsOnPostgres(url) : versionsInFile(url))
  const schema = known.size === 0 ? null : Math.max(...known)
  const pending = steps.filter(({ version }) => !known.has(version)).map(({ version, name }) => ({ version, name }))
  const { version, schema: previous } = previousRelease
  // On a schema that the previous release has not finished works a server of one before it, or none.
  const mayGoOn = pending.length === 0 || schema === null || schema >= previous
  return { schema, programSchema: steps.at(-1)?.version ?? 0, pending, previousRelease: { version, mayGoOn } }
}

async function versionsOnPostgres(url: string): Promise<Set<number>> {
  const database = openDatabase({ url, poolSize: 1 })
  try {
    return await appliedVersions(database.root)
  } finally {
    await database.close()
  }
}

/** Asks without opening it as servers do, which would change how the file is written. */
function versionsInFile(path: string): Set<number> {
  if (!existsSync(path)) return new Set()
  // Who only reads leaves a log behind where there was none, and who may write folds in one that a dead server left.
  const database = new BetterSqlite3(path, { readonly: existsSync(`${path}-wal`), fileMustExist: true, timeout: 5_000 })
  try {
    const hasTable =
      database.prepare("select 1 from sqlite_master where name = 'schema_migrations'").get() !== undefined
    const versions: unknown = hasTable ? database.prepare('select version from schema_migrations').pluck().all() : []
    return new Set(z.array(z.number().int()).parse(versions))
  } finally {
    database.close()
  }
}
