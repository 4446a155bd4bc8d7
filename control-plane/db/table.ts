import type { Knex } from 'knex'
import { z } from 'zod'
import { fail } from '../../shared/api/errors.ts'
import { encoderOf, rowReader, sqlTypeOf } from './columns.ts'
import { dialectOfDb } from './dialect.ts'
import type { Db } from './handle.ts'
import { command, commandAtEnd, query, returning, Texts, type Query, type Value } from './statement.ts'

/**
 * Describes a table once. From the description come the type of its rows, what selects them, and what inserts and updates them. A field is
 * written as code has it (`workspaceId`); its column is the same in snake case (`workspace_id`) unless another one is named. Rows are
 * selected under the names of their fields, so that reading one renames nothing. A store adds what is particular to it: its queries.
 */
interface Table<Shape extends Columns> {
  readonly name: string
  readonly columns: Shape
  /** The columns that are not named as their fields are, for a table of some of the fields. */
  readonly named: NonNullable<TableOptions<Shape>['columns']>
  /** `id, workspace_id as "workspaceId"`, for a statement's `select` or `returning`; with an alias, that table's columns. */
  select(alias?: string): string
  /** The fields with their columns, for a query that is built: `{ workspaceId: 'tasks.workspace_id' }`. */
  fields(alias?: string): Record<string, string>
  /** The types of columns by their names, as `with given` of a statement takes them. */
  readonly types: ReadonlyMap<string, ReturnType<typeof sqlTypeOf>>
  /** A prepared query for whole rows: `rest` is what follows the table's name. */
  query(rest: string): Query<Row<Shape>>
  /** A prepared write that ends with `returning` the whole rows. */
  returning(sql: string): (db: Db, values: readonly Value[]) => Promise<Row<Shape>[]>
  /** The start of a query that is built as it is needed, for whole rows. */
  from(db: Db): Knex.QueryBuilder
  /** Rows as the database gave them, by `from` or with `select`. */
  readonly read: (row: unknown) => Row<Shape>
  /** The table's own fields out of a row to which others were joined. */
  readonly part: (row: unknown) => Row<Shape>
  /** The rows that a query made by `from` finds. */
  list(rows: PromiseLike<unknown>): Promise<Row<Shape>[]>
  /** The first of them; null when there is none. */
  first(rows: Knex.QueryBuilder): Promise<Row<Shape> | null>
  /**
   * The row with these fields, of which there is at most one; null when there is none. Throws when a field is undefined or is
   * none of the table's: left out, it would find a row that was not asked for. It is prepared: what is searched by an index
   * for one value of a field alone is a query of its own, with that value written out.
   */
  find(db: Db, by: Fields<Shape>): Promise<Row<Shape> | null>
  /** Returns the fields as columns with the values that the database keeps; a field that is undefined is left out. */
  toColumns(fields: Changes<Shape>): Record<string, Knex.Value>
  /**
   * Writes these fields of the rows that have those of `by`, where null is a value like any other. Returns how many rows had
   * them. Throws as `find` does, and when there is nothing to write.
   */
  update(db: Db, by: Fields<Shape>, changes: Changes<Shape>): Promise<number>
  /** Fields that are left out get the default of the schema. */
  insert(db: Db, rows: Fields<Shape> | readonly Fields<Shape>[]): Promise<void>
  /** Inserts the row unless there is one with the same `unique` fields, which stays. Returns whether it was inserted. */
  insertNew(db: Db, row: Fields<Shape>, unique: readonly (keyof Shape & string)[]): Promise<boolean>
  /** A prepared insert of these fields, for a row that is written often. */
  inserter<Name extends keyof Shape & string>(names: readonly Name[]): Insert<Pick<Row<Shape>, Name>>
  /**
   * Writes what is new of these fields and raises the version; writes nothing when given the row itself. Fails with
   * `transient_conflict` when somebody else wrote the row since it was read.
   */
  replace(db: Db, ...replacement: Replacement<Shape>): Promise<void>
  /** Replaces the row if it is as it was read, and returns whether it was. Else nothing is written. */
  replaceIfSame(db: Db, ...replacement: Replacement<Shape>): Promise<boolean>
}

/** The columns of a table by their fields' names; the kinds are those of `columns.ts`. */
export type Columns = Readonly<Record<string, z.ZodType>>
type Row<Shape extends Columns> = { -readonly [Field in keyof Shape]: z.output<Shape[Field]> }
type Fields<Shape extends Columns> = Partial<Row<Shape>>
type Replacement<Shape extends Columns> = readonly [
  before: Row<Shape>,
  changes: Fields<Shape>,
  /** Columns that are no fields. */
  also?: Readonly<Record<string, Knex.Value>>,
]
/** A field that is undefined is left out. */
type Changes<Shape extends Columns> = { [Field in keyof Row<Shape>]?: Row<Shape>[Field] | undefined }

interface Insert<Row> {
  (db: Db, row: Row): Promise<number>
  readonly sql: string
  valuesOf(row: Row): Value[]
}

export type RowOf<T> = T extends Table<infer Shape> ? Row<Shape> : never

interface TableOptions<Shape extends Columns> {
  /** Columns that are not named as their fields are. */
  columns?: Partial<Record<keyof Shape & string, string>>
  /** The field by which `replace` finds a row; default `id`. */
  key?: keyof Shape & string
  /** Raised by each `replace`; default `version`. */
  version?: keyof Shape & string
}

export function table<Shape extends Columns>(
  name: string,
  shape: Shape,
  { columns: named = {}, key = 'id', version = 'version' }: TableOptions<Shape> = {},
): Table<Shape> {
  const schema = z.object(shape)
  const names = Object.keys(shape) as (keyof Shape & string)[]
  const columnOf = new Map<string, string>(names.map((field) => [field, named[field] ?? snakeCase(field)]))
  const encoders = new Map<string, (value: unknown) => unknown>(names.map((field) => [field, encoderOf(shape[field]!)]))
  const prefix = (alias: string | undefined) => (alias === undefined ? '' : `${alias}.`)
  const fields = (alias?: string) =>
    Object.fromEntries(names.map((field) => [field, `${prefix(alias)}${columnOf.get(field)!}`]))
  const own = fields()
  const read = rowReader<Row<Shape>>(schema as unknown as { parse(row: unknown): Row<Shape> })
  const select = (alias?: string) =>
    names
      .map((field) => {
        const column = `${prefix(alias)}${columnOf.get(field)!}`
        return column === field ? column : `${column} as "${field}"`
      })
      .join(', ')
  const toColumns = (fields: Changes<Shape>) => {
    const values: Record<string, Knex.Value> = {}
    for (const [field, value] of Object.entries(fields)) {
      if (value === undefined) continue
      const column = columnOf.get(field)
      // A wider object may be given, such as a row with others joined to it.
      if (column !== undefined) values[column] = encoders.get(field)!(value) as Knex.Value
    }
    return values
  }
  const conditions = (by: Fields<Shape>) => {
    for (const [field, value] of Object.entries(by))
      if (value === undefined || !columnOf.has(field)) throw new Error(`${name} cannot be searched by ${field}`)
    return toColumns(by)
  }
  const from = (db: Db): Knex.QueryBuilder => db(name).select(own)
  const texts = new Texts()
  const selected = `select ${select()} from ${name}`
  const insertOf = (columns: readonly string[]) =>
    `insert into ${name} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`
  const update = (db: Db, by: Record<string, Knex.Value>, columns: Record<string, Knex.Value>) => {
    const names = Object.keys(columns)
    if (names.length === 0) throw new Error(`Nothing of ${name} is written.`)
    const where = whereOf(by)
    const sql = `update ${name} set ${names.map((column) => `${column} = ?`).join(', ')} where ${where.sql}`
    return texts.change(db, sql, [...valuesOf(columns), ...where.values])
  }
  const replaceIfSame = async (db: Db, ...[before, changes, also = {}]: Replacement<Shape>) => {
    const [id, raised] = [columnOf.get(key)!, columnOf.get(version)!]
    const seen = before[version as keyof Shape] as number
    const was = toColumns(before)
    // An unchanged column is left out, since writing one costs the indexes that have it.
    const columns = Object.entries(toColumns(changes)).filter(([column, value]) => value !== was[column])
    const written = { ...Object.fromEntries(columns), ...also, [raised]: seen + 1 }
    return (await update(db, { [id]: was[id]!, [raised]: seen }, written)) === 1
  }
  const first = async (rows: Knex.QueryBuilder) => {
    const found: unknown = await rows.first()
    return found === undefined ? null : read(found)
  }
  return {
    name,
    columns: shape,
    named,
    select,
    fields,
    types: new Map(names.map((field) => [columnOf.get(field)!, sqlTypeOf(shape[field]!)])),
    read,
    part: (row) => read(Object.fromEntries(names.map((field) => [field, (row as Record<string, unknown>)[field]]))),
    toColumns,
    from,
    first,
    async find(db, by) {
      const all = conditions(by)
      const id = columnOf.get(key)!
      // The id is searched alone where it is given: planned for any values, PostgreSQL may walk all rows that share the other field.
      const where = whereOf(all[id] == null ? all : { [id]: all[id] })
      const found = await texts.first(db, `${selected} where ${where.sql}`, where.values)
      if (found === undefined) return null
      const row = read(found)
      const hasAll = Object.entries(toColumns(row)).every(
        ([column, value]) => !(column in all) || all[column] === value,
      )
      return hasAll ? row : null
    },
    update: (db, by, changes) => update(db, conditions(by), toColumns(changes)),
    query: (rest) => query(`${selected} ${rest}`, schema) as unknown as Query<Row<Shape>>,
    returning: (sql) =>
      returning(`${sql} returning ${select()}`, schema) as unknown as ReturnType<Table<Shape>['returning']>,
    list: async (rows) => ((await rows) as unknown[]).map(read),
    async insert(db, rows) {
      const all = (Array.isArray(rows) ? (rows as readonly Fields<Shape>[]) : [rows as Fields<Shape>]).map(toColumns)
      const [only] = all
      if (only === undefined) return
      if (all.length > 1) await db(name).insert(all)
      else await texts.change(db, insertOf(Object.keys(only)), valuesOf(only))
    },
    async insertNew(db, row, unique) {
      const columns = toColumns(row)
      const taken = unique.map((field) => columnOf.get(field)!).join(', ')
      const sql = `${insertOf(Object.keys(columns))} on conflict (${taken}) do nothing`
      return (await texts.change(db, sql, valuesOf(columns))) === 1
    },
    inserter<Name extends keyof Shape & string>(written: readonly Name[]) {
      const sql = insertOf(written.map((field) => columnOf.get(field)!))
      const valuesOf = (row: Pick<Row<Shape>, Name>) =>
        written.map((field) => encoders.get(field)!(row[field]) as Value)
      const insert = command(sql)
      return Object.assign((db: Db, row: Pick<Row<Shape>, Name>) => insert(db, valuesOf(row)), { sql, valuesOf })
    },
    async replace(db, ...replacement) {
      const [before, changes] = replacement
      if (changes === before) return
      expectOnlyWriter(Number(await replaceIfSame(db, ...replacement)))
    },
    replaceIfSame,
  }
}

/** Inserts a row into each of two tables, on PostgreSQL by one statement, which a transaction waits for at its end. */
export function insertBoth<First, Second>(
  first: Insert<First>,
  second: Insert<Second>,
): (db: Db, one: First, other: Second) => Promise<void> {
  const both = commandAtEnd(`with also as (${second.sql}) ${first.sql}`)
  return async (db, one, other) => {
    if (dialectOfDb(db) === 'postgres') return both(db, [...second.valuesOf(other), ...first.valuesOf(one)])
    await first(db, one)
    await second(db, other)
  }
}

const valuesOf = (columns: Record<string, Knex.Value>) => Object.values(columns) as Value[]

function whereOf(columns: Record<string, Knex.Value>): { sql: string; values: Value[] } {
  const conditions = Object.entries(columns)
  return {
    sql: conditions.map(([column, value]) => `${column} ${value === null ? 'is null' : '= ?'}`).join(' and '),
    values: conditions.flatMap(([, value]) => (value === null ? [] : [value as Value])),
  }
}

const snakeCase = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * Called with the count of rows that a compare-and-set wrote. Fails with `transient_conflict` when somebody else wrote the
 * row since it was read; the transaction is then done again from its beginning.
 */
export function expectOnlyWriter(rows: number): void {
  if (rows !== 1) fail('transient_conflict')
}

/** Reads page after page, each behind the last row of the one before, until one is not full. */
export async function* inPages<Row>(
  limit: number,
  read: (page: { after?: Row; limit: number }) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  let page: Row[] = []
  do {
    const after = page.at(-1)
    page = await read({ limit, ...(after !== undefined && { after }) })
    yield page
  } while (page.length === limit)
}
