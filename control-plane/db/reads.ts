import { idFrom } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { int, text } from './columns.ts'

/** Returns the number of rows that a query finds. */
export async function countOf(query: Knex.QueryBuilder): Promise<number> {
  const counted: unknown = await query.count({ n: '*' }).first()
  return Number((counted as { n: unknown }).n)
}

const counted = z.object({ value: text, n: int })

/** Counts the rows that a query finds by the value of a column. A value that no row has is left out. */
export async function countBy<Key extends string>(query: Knex.QueryBuilder, column: string): Promise<Map<Key, number>> {
  const rows: unknown[] = await query.groupBy(column).select({ value: column }).count({ n: '*' })
  return new Map(rows.map((row) => counted.parse(row)).map(({ value, n }) => [idFrom<Key>(value), n]))
}

/** Reads a column of the first row that a query finds; null when it finds none. */
export async function cellOf<T extends z.ZodType>(
  query: Knex.QueryBuilder,
  column: string,
  kind: T,
): Promise<z.output<T> | null> {
  const found: unknown = await query.first(column)
  return found === undefined ? null : kind.parse((found as Record<string, unknown>)[column])
}
