import type { Knex } from 'knex'
import { countRows, mostRows, type Asked, type Walk } from './asked.ts'

/**
 * The steps of a plan of SQLite that read many rows. It says how it goes through a table: by which index, and for how many of its
 * columns. How many rows have these values is counted; where it cannot be told which values they are, as in a join, what was
 * measured of the index says how many there are on average. A page in the order of an index ends where it is full.
 */
export class SqlitePlans {
  private readonly root: Knex
  readonly counts: ReadonlyMap<string, number>
  private readonly indexes: ReadonlyMap<string, Index>
  private readonly most = new Map<string, number>()

  static async of(root: Knex): Promise<SqlitePlans> {
    const tables: string[] = await root('sqlite_master').where({ type: 'table' }).pluck('name')
    const counts = await countRows(root, tables)
    const indexes = new Map<string, Index>()
    const all: { name: string; tbl_name: string; sql: string | null; stat: string | null }[] = await root.raw(
      `select name, tbl_name, sql, stat from sqlite_master left join sqlite_stat1 on idx = name where type = 'index'`,
    )
    for (const { name, tbl_name: table, sql, stat } of all) {
      const columns: { name: string | null }[] = await root.raw(`select name from pragma_index_info('${name}')`)
      const where = /\swhere\s(.*)$/is.exec(sql ?? '')?.[1] ?? '1 = 1'
      indexes.set(name, {
        table,
        columns: columns.map((each) => each.name),
        rows: stat?.split(' ').map(Number) ?? [],
        where,
      })
    }
    return new SqlitePlans(root, counts, indexes)
  }

  private constructor(root: Knex, counts: ReadonlyMap<string, number>, indexes: ReadonlyMap<string, Index>) {
    this.root = root
    this.counts = counts
    this.indexes = indexes
  }

  async walksOf(asked: Asked): Promise<Walk[]> {
    const bindings = asked.bindings as Knex.RawBinding[]
    const plan: { detail: string }[] = await this.root.raw(`explain query plan ${asked.sql}`, bindings)
    const found: Walk[] = []
    for (const { detail } of plan) {
      const [table, rows] = await this.readBy(detail, asked)
      if (rows > mostRows) found.push({ asked, table, step: `${detail}: ${rows} rows` })
    }
    return found.length > 0 && (await this.isFullPage(asked, plan)) ? [] : found
  }

  private async isFullPage({ sql, bindings }: Asked, plan: readonly { detail: string }[]): Promise<boolean> {
    const limit = /^select\b.*\blimit (\?|\d+)$/is.exec(sql)?.[1]
    if (limit === undefined || plan.some(({ detail }) => detail.startsWith('USE TEMP B-TREE'))) return false
    const rows: unknown[] = await this.root.raw(sql, bindings as Knex.RawBinding[])
    return rows.length >= Number(limit === '?' ? bindings.at(-1) : limit)
  }

  /** The table of a step, and the number of rows that the step reads of it each time. */
  private async readBy(detail: string, asked: Asked): Promise<[table: string, rows: number]> {
    const step = /^(SCAN|SEARCH) (\S+)(?: USING (?:COVERING )?INDEX (\S+))?(?: \((.*)\))?/.exec(detail)
    if (step === null || / VIRTUAL TABLE /.test(detail)) return ['', 0]
    const [, how, name, indexName = '', terms = ''] = step
    const index = this.indexes.get(indexName)
    const table = index?.table ?? tableOf(name!, asked.sql)
    const count = this.counts.get(table) ?? 0
    if (count <= mostRows) return [table, count]
    // Whether rows refer to one that is removed: the first of them would answer.
    if (!asked.sql.includes(table)) return [table, 1]
    if (how === 'SEARCH' && index === undefined) return [table, 1]
    // What was not measured has no rows.
    if (index === undefined) return [table, count]
    const equal = how === 'SCAN' ? 0 : terms.split(' AND ').filter((term) => /^[^(]*[^<>]=\?/.test(term)).length
    return [table, (await this.countWithin(index, { equal, terms }, asked)) ?? (await this.countMost(indexName, equal))]
  }

  /** How many rows at most have the same values in the first columns of an index. */
  private async countMost(name: string, columns: number): Promise<number> {
    const key = `${name} ${columns}`
    const known = this.most.get(key)
    if (known !== undefined) return known
    const { table, columns: all, where } = this.indexes.get(name)!
    const by = all.slice(0, columns).map((column) => column ?? 'null')
    const grouping = by.length === 0 ? '' : ` group by ${by.join(', ')}`
    const counted = `select count(*) as n from ${table} where ${where}${grouping}`
    const [row]: { n: number | null }[] = await this.root.raw(`select max(n) as n from (${counted})`)
    const most = row?.n ?? 0
    this.most.set(key, most)
    return most
  }

  /** null: it is not written as a value what is compared with a column. */
  private async countWithin(
    index: Index,
    { equal, terms }: { equal: number; terms: string },
    { sql, bindings }: Asked,
  ): Promise<number | null> {
    const query = this.root(index.table).whereRaw(index.where.replaceAll('?', '\\?'))
    for (const column of index.columns.slice(0, equal)) {
      const values = column === null ? null : comparedWith(column, { sql, bindings })
      if (values === null) return null
      void query.whereIn(column!, values as Knex.Value[])
    }
    for (const [range, left, how] of terms.matchAll(/(\w+|\(\w+(?:,\w+)*\))([<>])(?:\?|\([?,]*\))/g)) {
      const compared = new RegExp(
        `${left!.replaceAll(/[(),]/g, (sign) => (sign === ',' ? ', ?' : `\\${sign}`))}[\`"]? ${how}=? [(?]`,
        'i',
      ).exec(sql)
      if (compared === null) return null
      const count = range.split('?').length - 1
      const at = sql.slice(0, compared.index).split('?').length - 1
      void query.whereRaw(range, bindings.slice(at, at + count) as Knex.RawBinding[])
    }
    return Number((await query.count({ n: '*' }))[0]!.n)
  }
}

interface Index {
  table: string
  /** null: an expression. */
  columns: readonly (string | null)[]
  /** How many there are, how many have the same first column, the same first two and so on; none: it was not measured. */
  rows: readonly number[]
  where: string
}

/** The values with which a statement compares a column; null: none that stand in it. */
function comparedWith(column: string, { sql, bindings }: Pick<Asked, 'sql' | 'bindings'>): readonly unknown[] | null {
  const found = new RegExp(`\\b${column}[\`"]? (?:= (?:\\?|'(\\w+)')|in \\([?, ]*\\))`, 'i').exec(sql)
  if (found === null) return null
  if (found[1] !== undefined) return [found[1]]
  const at = sql.slice(0, found.index).split('?').length - 1
  return bindings.slice(at, at + found[0].split('?').length - 1)
}

/** The table of an alias. */
function tableOf(name: string, sql: string): string {
  const found = new RegExp(
    `(?:from|join|,)\\s+[\`"]?(\\w+)[\`"]?\\s+(?:as\\s+)?[\`"]?${name}[\`"]?(?:\\s|$|\\))`,
    'i',
  ).exec(sql)
  return found?.[1] ?? name
}
