import type { Knex } from 'knex'
import { escapeLiteral } from 'pg'
import { countRows, mostRows, type Asked, type Walk } from './asked.ts'

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Index Cond'?: string
  Filter?: string
  Plans?: Node[]
}

/** The steps of PostgreSQL that read many rows: it does what is asked, in a transaction that is undone, and counts. */
export class PostgresPlans {
  private readonly root: Knex
  readonly counts: ReadonlyMap<string, number>

  static async of(root: Knex): Promise<PostgresPlans> {
    const tables: string[] = await root('pg_tables').where({ schemaname: 'public' }).pluck('tablename')
    return new PostgresPlans(root, await countRows(root, tables))
  }

  private constructor(root: Knex, counts: ReadonlyMap<string, number>) {
    this.root = root
    this.counts = counts
  }

  /** A prepared statement is planned by its values at first, and after some times for any values, which is another plan. */
  async walksOf(asked: Asked): Promise<Walk[]> {
    const walks = await this.walksOfPlan(asked, { isGeneric: false })
    return asked.isPrepared ? [...walks, ...(await this.walksOfPlan(asked, { isGeneric: true }))] : walks
  }

  private async walksOfPlan(asked: Asked, { isGeneric }: { isGeneric: boolean }): Promise<Walk[]> {
    const { sql, bindings } = asked
    const tx = await this.root.transaction()
    try {
      const ask = await askerOf(tx)
      if (isGeneric) {
        await ask(`deallocate all; set local plan_cache_mode = force_generic_plan`)
        await ask(`prepare asked as ${sql}`)
      }
      const what = isGeneric
        ? `execute asked${bindings.length === 0 ? '' : ` (${bindings.map(literalOf).join(', ')})`}`
        : sql
      const [row] = await ask(`explain (analyze, timing off, format json) ${what}`, isGeneric ? [] : bindings)
      const [{ Plan: plan }] = JSON.parse(Object.values(row!)[0]!) as [{ Plan: Node }]
      const answered = plan['Actual Rows']
      return nodesOf(plan).flatMap((node) => {
        const { 'Relation Name': table, 'Actual Rows': rows, 'Actual Loops': loops } = node
        const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
        const read = (rows + removed) * loops
        if (table === undefined || read <= mostRows + answered || (this.counts.get(table) ?? 0) <= mostRows) return []
        const step = `${isGeneric ? 'for any values: ' : ''}${node['Node Type']} ${node['Index Name'] ?? ''} ${node['Index Cond'] ?? ''} filter ${node.Filter ?? ''}: ${read} rows`
        return [{ asked, table, step }]
      })
    } finally {
      await tx.rollback()
    }
  }
}

type Ask = (sql: string, bindings?: readonly unknown[]) => Promise<Record<string, string>[]>

/** Asks on the transaction's connection, without knex's own reading of `?`. */
async function askerOf(tx: Knex.Transaction): Promise<Ask> {
  const { client } = tx as unknown as {
    client: {
      acquireConnection(): Promise<unknown>
      query(connection: unknown, query: object): Promise<{ response: { rows: Record<string, string>[] } }>
    }
  }
  const connection = await client.acquireConnection()
  return async (sql, bindings = []) => (await client.query(connection, { sql, bindings })).response.rows
}

/** The value as PostgreSQL reads it in a text. */
function literalOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'`
  // In a list of PostgreSQL a text is quoted as in JSON.
  return escapeLiteral(
    Array.isArray(value) ? `{${value.map((each) => JSON.stringify(each)).join(',')}}` : `${value as string | number}`,
  )
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
