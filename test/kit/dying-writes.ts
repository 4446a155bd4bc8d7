import type { Knex } from 'knex'

/**
 * Deaths at each write in turn: a trigger on every table counts the writes down, and breaks the transaction with the one at
 * which it comes to nothing.
 */
type On = 'sqlite' | 'postgres'

const tablesOf = async (root: Knex, isSqlite: boolean): Promise<string[]> => {
  const rows: { name: string }[] = isSqlite
    ? // An index of words takes no trigger; it is written between rows of tables that do.
      await root.raw(
        "select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite%'",
      )
    : await root('pg_tables').whereRaw('schemaname = current_schema()').select({ name: 'tablename' })
  return rows.map(({ name }) => name).filter((name) => name !== 'death')
}

export async function setUpDeaths(root: Knex, database: On): Promise<void> {
  const isSqlite = database === 'sqlite'
  const tables = await tablesOf(root, isSqlite)
  await root.raw('create table death (writes integer not null)')
  await root('death').insert({ writes: 0 })
  if (!isSqlite)
    await root.raw(`create function count_down() returns trigger language plpgsql as $$
      declare left_over integer;
      begin
        update death set writes = writes - 1 returning writes into left_over;
        if left_over = 0 then raise exception 'dies here'; end if;
        return null;
      end $$`)
  for (const table of tables)
    for (const event of ['insert', 'update', 'delete']) {
      const name = `death_${event}_${table}`
      await root.raw(
        isSqlite
          ? `create trigger ${name} after ${event} on ${table} begin
               update death set writes = writes - 1;
               select raise(abort, 'dies here') from death where writes = 0;
             end`
          : `create trigger ${name} after ${event} on ${table} for each row execute function count_down()`,
      )
    }
}

export async function removeDeaths(root: Knex, database: On): Promise<void> {
  const isSqlite = database === 'sqlite'
  for (const table of await tablesOf(root, isSqlite))
    for (const event of ['insert', 'update', 'delete'])
      await root.raw(`drop trigger if exists death_${event}_${table}${isSqlite ? '' : ` on ${table}`}`)
  if (!isSqlite) await root.raw('drop function if exists count_down')
  await root.raw('drop table if exists death')
}

/** From now on the nth write fails, with all of its transaction; 0: none does. */
export async function dieAtWrite(root: Knex, nth: number): Promise<void> {
  await root('death').update({ writes: nth })
}
