import type { Knex } from 'knex'
import type { z } from 'zod'

/** Returns the number of rows that a query finds. */
export async function countOf(query: Knex.QueryBuilder): Promise<number> {
  const counted: unknown = await query.count({ n: '*' }).first()
  return Number((counted as { n: unknown }).n)
}

/** One column of the first row that a query finds; null when it finds none. */
export async function cellOf<T extends z.ZodType>(
  query: Knex.QueryBuilder,
  column: string,
  kind: T,
): Promise<z.output<T> | null> {
  const found: unknown = await query.first(column)
  return found === undefined ? null : kind.parse((found as Record<string, unknown>)[column])
}
