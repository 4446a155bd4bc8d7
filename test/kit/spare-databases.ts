import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Knex } from 'knex'

/**
 * Databases of PostgreSQL that a test has done with and another one takes: making one from the template costs as much as
 * several tests. Each is a file of its name in a folder that all workers share, which whoever takes it moves away.
 */
export class SpareDatabases {
  private readonly free: string
  private readonly taken: string

  constructor(folder: string) {
    this.free = join(folder, 'spare-databases')
    this.taken = join(folder, 'taken-databases')
    for (const made of [this.free, this.taken]) mkdirSync(made, { recursive: true })
  }

  /** Returns the name of one that nobody else has; null when there is none. */
  take(): string | null {
    for (const name of readdirSync(this.free)) {
      try {
        renameSync(join(this.free, name), join(this.taken, name))
        return name
      } catch {
        // Another worker was faster.
      }
    }
    return null
  }

  give(name: string): void {
    writeFileSync(join(this.free, name), '')
  }
}

/** Makes a database as the template is, whose tables these are; what cannot be made so shows in its `schemaOf`. */
export async function resetDatabase(root: Knex, tables: readonly string[]): Promise<void> {
  await root.raw(
    'select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  const others = (await tablesOf(root)).filter((name) => !tables.includes(name))
  for (const name of others) await root.raw('drop table ?? cascade', [name])
  await deleteRows(root)
  await root.raw(
    "select setval(oid::regclass, 1, false) from pg_class where relkind = 'S' and relnamespace = 'public'::regnamespace",
  )
}

export async function tablesOf(root: Knex, where = ''): Promise<string[]> {
  const { rows } = (await root.raw(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace ${where}`,
  )) as { rows: { name: string }[] }
  return rows.map(({ name }) => name)
}

/** Of all tables but that of the migrations; those that never had any take no room. */
export async function deleteRows(root: Knex): Promise<void> {
  const tables = await tablesOf(root, "and relname <> 'schema_migrations' and pg_relation_size(oid) > 0")
  const deletes = tables.map((name) => `delete from "${name}";`).join('')
  // References between tables would ask for an order.
  await root.raw(`set session_replication_role = replica; ${deletes} set session_replication_role = origin;`)
}

/** A hash of all that migrations make, which tells databases apart that are not alike but for their rows. */
export async function schemaOf(root: Knex): Promise<string> {
  const { rows } = (await root.raw(`
    with ours as (select * from pg_class where relnamespace = 'public'::regnamespace),
    line as (
      select format('%s %s %s', relkind, relname, reloptions) as text from ours
      union all
      select format('%s %s %s %s %s %s', relname, attnum, attname, atttypid, attnotnull, adbin)
        from pg_attribute join ours on ours.oid = attrelid
        left join pg_attrdef on adrelid = attrelid and adnum = attnum
      union all
      select format('%s %s %s %s', indexrelid::regclass, indisunique, indkey, indpred) from pg_index join ours on ours.oid = indexrelid
      union all
      select format('%s %s %s %s %s', conrelid::regclass, conname, conkey, confkey, conbin)
        from pg_constraint where connamespace = 'public'::regnamespace
      union all
      select format('%s %s %s', tgrelid::regclass, tgname, tgenabled) from pg_trigger where not tgisinternal
      union all
      select format('%s %s', proname, prosrc) from pg_proc where pronamespace = 'public'::regnamespace
      union all
      select setconfig::text from pg_db_role_setting
        where setdatabase = (select oid from pg_database where datname = current_database())
      union all
      select schema_migrations::text from schema_migrations
    )
    select md5(string_agg(text, chr(10) order by text)) as hash from line`)) as { rows: { hash: string }[] }
  return rows[0]!.hash
}
