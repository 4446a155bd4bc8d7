import type { Knex } from 'knex'

// Catches the statements that a server asks, and looks at how its database answers them.

export interface Asked {
  /** What was done when it was asked. */
  on: string
  sql: string
  bindings: readonly unknown[]
  /** PostgreSQL may answer it by a plan for any values. */
  isPrepared: boolean
}

export interface Walk {
  asked: Asked
  /** The table that is walked. */
  table: string
  /** How, in the words of the database. */
  step: string
}

/** How often a text is looked at: other values may be another plan. */
const kinds = 2

interface Sent {
  sql: string
  bindings?: readonly unknown[]
  options?: { name?: string }
}

/** Statements that a database plans, each text for the first things in whose course it was asked. */
export class Statements {
  private readonly known = new Map<string, Asked[]>()
  private readonly root: Knex
  private on = 'what went before'
  private isStopped = false

  constructor(root: Knex) {
    this.root = root
    root.client.on('query', ({ sql, bindings = [], options }: Sent) => {
      if (this.isStopped || !/^\s*(?:select|with (?!also)|update|delete)/i.test(sql)) return
      const same = this.known.get(sql) ?? []
      if (same.length === 0) this.known.set(sql, same)
      if (same.length < kinds && same.every(({ on }) => on !== this.on))
        same.push({ on: this.on, sql, bindings, isPrepared: options?.name !== undefined })
    })
  }

  async while<Result>(on: string, work: () => Promise<Result>): Promise<Result> {
    this.on = on
    const result = await work()
    // What a request leaves behind is done a little later.
    this.on = `after ${on}`
    return result
  }

  /** What was asked up to now, before the plans are asked for. */
  stop(): readonly Asked[] {
    this.isStopped = true
    return [...this.known.values()].flat()
  }
}

/** Of a table with more rows, no more are read than so many beyond those that are answered. */
export const mostRows = 600

/** How many rows each table has. */
export async function countRows(root: Knex, tables: readonly string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const table of tables) counts.set(table, Number((await root(table).count({ n: '*' }))[0]!['n']))
  return counts
}
