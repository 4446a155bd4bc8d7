import type { Knex } from 'knex'
import { dialectOfDb } from '../../../control-plane/db/dialect.ts'
import { byDatabase, type Growth, type Owners } from './growth.ts'
import { growthsOf } from './growths.ts'

/**
 * Makes a database as one looks after a year: each table that grows gets thousands of rows like one that is there, by a statement
 * of its own. They are newer than what they are like, so that whoever looks for that one among them walks them all, and end
 * where there is an end. A third is another workspace's.
 */
export async function growRows(root: Knex, of: Owners): Promise<void> {
  await root.transaction(async (tx) => {
    // SQLite has seen that what they refer to is there, and PostgreSQL would look for each by itself.
    if (dialectOfDb(tx) === 'postgres') await tx.raw('set local session_replication_role = replica')
    for (const [table, growth] of Object.entries(growthsOf(of))) await grow(tx, table, growth)
  })
}

async function grow(tx: Knex.Transaction, table: string, { count, set, like = '1 = 1' }: Growth): Promise<void> {
  const found: Record<string, unknown> | undefined = like === null ? set : await tx(table).whereRaw(like).first()
  if (found === undefined) throw new Error(`${table} has no row like which others could be made`)
  const columns = Object.keys(found).filter((column) => set[column] !== byDatabase)
  const unknown = Object.keys(set).filter((column) => !(column in found))
  if (unknown.length > 0) throw new Error(`${table} has no ${unknown.join(', ')}`)
  const values = columns.map((column) => set[column] ?? `t.${quoted(column)}`)
  await tx.raw(
    `insert into ${table} (${columns.map(quoted).join(', ')})
     with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})
     select ${values.join(', ')} from n${like === null ? '' : ` cross join (select * from ${table} where ${like} limit 1) t`}`,
  )
}

const quoted = (column: string) => `"${column}"`
