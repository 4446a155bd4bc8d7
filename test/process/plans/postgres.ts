import type { Knex } from 'knex'
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

  async walksOf(asked: Asked): Promise<Walk[]> {
    const tx = await this.root.transaction()
    try {
      const { client } = tx as unknown as {
        client: {
          acquireConnection(): Promise<unknown>
          query(connection: unknown, query: object): Promise<{ response: { rows: Record<string, string>[] } }>
        }
      }
      const connection = await client.acquireConnection()
      const sql = `explain (analyze, timing off, format json) ${asked.sql}`
      const { response } = await client.query(connection, { sql, bindings: asked.bindings })
      const [{ Plan: plan }] = JSON.parse(Object.values(response.rows[0]!)[0]!) as [{ Plan: Node }]
      const answered = plan['Actual Rows']
      return nodesOf(plan).flatMap((node) => {
        const { 'Relation Name': table, 'Actual Rows': rows, 'Actual Loops': loops } = node
        const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
        const read = (rows + removed) * loops
        if (table === undefined || read <= mostRows + answered || (this.counts.get(table) ?? 0) <= mostRows) return []
        const step = `${node['Node Type']} ${node['Index Name'] ?? ''} ${node['Index Cond'] ?? ''} filter ${node.Filter ?? ''}: ${read} rows`
        return [{ asked, table, step }]
      })
    } finally {
      await tx.rollback()
    }
  }
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
