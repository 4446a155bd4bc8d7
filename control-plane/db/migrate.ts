import type { Knex } from 'knex'
import { z } from 'zod'
import { dialectOfDb } from './dialect.ts'
import { migrations } from './migrations/index.ts'
import type { Migration } from './migrations/migration.ts'
import type { PostgresClient } from './postgres-client.ts'
import { query } from './statement.ts'

/** Exported for its test. */
export const migrationLock = 7_331_001

/**
 * A migration waits no longer for a table that somebody else uses (a dump, an open transaction): all who come after it would
 * wait behind it, on the replicas of the earlier release that still run.
 */
const defaultLockMs = 10_000

/**
 * Brings the schema up to this release: numbered, forward only, each in its own transaction. Several replicas may start
 * at once; on PostgreSQL an advisory lock lets one of them work while the others wait, for as long as it takes.
 */
export async function migrate(
  root: Knex,
  now: number,
  steps: readonly Migration[] = migrations,
  { lockMs = defaultLockMs }: { lockMs?: number } = {},
): Promise<number> {
  let applied = 0
  const all = async () => {
    const known = await appliedVersions(root)
    const missing = steps.filter(({ version }) => !known.has(version))
    for (const migration of missing) if (await apply(root, { migration, now, lockMs })) applied++
  }
  await (dialectOfDb(root) === 'postgres' ? (root.client as PostgresClient).patiently(all) : all())
  return applied
}

/**
 * Reads the versions without a lock, so that a caller with nothing to apply, such as an operator's command beside a busy server, waits for
 * nobody.
 */
export async function appliedVersions(root: Knex): Promise<Set<number>> {
  if (!(await root.schema.hasTable('schema_migrations'))) return new Set()
  return new Set((await root('schema_migrations').pluck('version')) as number[])
}

/** False: it was applied before. */
function apply(
  root: Knex,
  { migration, now, lockMs }: { migration: Migration; now: number; lockMs: number },
): Promise<boolean> {
  return root.transaction(async (tx) => {
    if (dialectOfDb(tx) === 'postgres') await takeTurn(tx, lockMs)
    await ensureTable(tx)
    const done = await tx('schema_migrations').where({ version: migration.version }).first()
    if (done) return false
    await migration.up(tx)
    await tx('schema_migrations').insert({ version: migration.version, name: migration.name, applied_at: now })
    return true
  })
}

/** The limit of reads, which each connection has, would undo a migration of many rows at every start. */
async function takeTurn(tx: Knex.Transaction, lockMs: number): Promise<void> {
  await tx.raw('set local statement_timeout = 0')
  await tx.raw('select pg_advisory_xact_lock(?)', [migrationLock])
  await tx.raw(`set local lock_timeout = ${lockMs}`)
}

async function ensureTable(tx: Knex.Transaction): Promise<void> {
  await tx.raw(
    'create table if not exists schema_migrations (version integer primary key, name text not null, applied_at bigint not null)',
  )
}

const newest = query(
  'select max(version) as version from schema_migrations',
  z.object({ version: z.number().nullable() }),
)

/** True when the schema is the one this release was written for; `/readyz` asks, also while a write waits for the file of SQLite. */
export async function isMigrated(root: Knex): Promise<boolean> {
  const last = migrations.at(-1)
  const row = await newest.first(root, [])
  return (row?.version ?? 0) >= (last?.version ?? 0)
}
