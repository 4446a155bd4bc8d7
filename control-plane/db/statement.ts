import { hash } from 'node:crypto'
import type { Knex } from 'knex'
import type { z } from 'zod'
import type { CopiedInto, CopiedRow } from './copy.ts'
import type { Askable, Db } from './handle.ts'
import { rowReader } from './columns.ts'

/**
 * Queries that are asked so often that building them costs more than asking them: their text is written once, and each
 * database prepares it once for a connection. Everything else is asked through knex's builder.
 *
 * `?` stands for a value, `in ?` for a list of them, `in [select ...]` for a list that is read first: with `in (select ...)`
 * PostgreSQL may look into it for every row of the table instead. What ends with `locked` keeps the rows that it reads as they are until
 * the transaction ends (see `lockRows`). `with given (id text, ...) as ?` begins a statement about many rows, each with values of its own:
 * they are bound as one JSON list of objects. `TABLE.id is given` then finds the table's rows by that column, and `is given and free` leaves out
 * those that another transaction has locked. Columns are named (see `columnsOf`): PostgreSQL refuses a prepared
 * `select *` after a migration has added a column, which another replica may do while this one runs.
 */
export interface Query<Row> {
  first(db: Askable, values: readonly Value[]): Promise<Row | null>
  list(db: Askable, values: readonly Value[]): Promise<Row[]>
}

export type Value = string | number | null | Uint8Array | readonly (string | number)[]

/** A statement's text as each database wants it. */
export interface StatementText {
  /** Lists are bound as JSON. */
  sqlite: string
  postgres: string
  /** The name, unlike that of any other text; null: the statement is not prepared. */
  name: string | null
}

/** The methods of both databases' clients that knex does not have. */
export interface StatementClient {
  /** Reads what is committed on the root handle, and in a transaction what that sees. */
  readRows(text: StatementText, values: readonly Value[]): Promise<unknown[]> | unknown[]
  /** Resolves with the number of rows that the statement changed. */
  change(text: StatementText, values: readonly Value[]): Promise<number>
  /** Inserts rows of which values are large. */
  insertRows(into: CopiedInto, rows: readonly CopiedRow[]): Promise<void>
  /** Resolves once the statement is sent; `answer`: the rows that it changed, where it ends with `returning`. */
  sendRows(text: StatementText, values: readonly Value[]): Promise<{ answer: Promise<unknown[]> }>
  /** See `readTogether`. */
  onOneConnection<Result>(work: (db: Askable) => Promise<Result>): Promise<Result>
}

/**
 * `isPrepared` false: PostgreSQL plans it each time by its values. For a condition whose share of the table is not known
 * without them, where a plan for any values may read the whole of it.
 */
export function query<Row>(
  sql: string,
  row: { parse(row: unknown): Row },
  { isPrepared = true }: { isPrepared?: boolean } = {},
): Query<Row> {
  const text = isPrepared ? textOf(sql) : { ...textOf(sql), name: null }
  const read = rowReader(row)
  return {
    async first(db, values) {
      const [found] = await clientOf(db).readRows(text, values)
      return found === undefined ? null : read(found)
    },
    async list(db, values) {
      return (await clientOf(db).readRows(text, values)).map(read)
    },
  }
}

/** A statement that writes. Returns the number of rows that it changed. */
export function command(sql: string): (db: Db, values: readonly Value[]) => Promise<number> {
  const text = textOf(sql)
  return (db, values) => clientOf(db).change(text, values)
}

/** A statement that writes, and on which nothing in its transaction depends: it resolves once it is sent (see `awaitedAtEnd`). */
export function commandAtEnd(sql: string): (db: Db, values: readonly Value[]) => Promise<void> {
  const text = textOf(sql)
  return async (db, values) => awaitedAtEnd(db, (await clientOf(db).sendRows(text, values)).answer)
}

/** A statement that writes and ends with `returning`: it returns the rows that it changed. */
export function returning<Row>(
  sql: string,
  row: { parse(row: unknown): Row },
): (db: Db, values: readonly Value[]) => Promise<Row[]> {
  const send = sending(sql, row)
  return async (db, values) => (await send(db, values)).answer
}

/**
 * A statement as that of `returning`, which resolves once it is sent: what is asked next is done after it. When it fails in a transaction of
 * PostgreSQL, what was asked next fails as well.
 */
export function sending<Row>(
  sql: string,
  row: { parse(row: unknown): Row },
): (db: Db, values: readonly Value[]) => Promise<{ answer: Promise<Row[]> }> {
  const text = textOf(sql)
  const read = rowReader(row)
  return async (db, values) => {
    const { answer } = await clientOf(db).sendRows(text, values)
    return { answer: answer.then((rows) => rows.map(read)) }
  }
}

/**
 * Reads on the root handle that are asked without waiting for one another, each of which sees at least what those before it saw:
 * PostgreSQL answers them on one connection, in their order, in one round trip.
 */
export function readTogether<Result>(root: Knex, work: (db: Askable) => Promise<Result>): Promise<Result> {
  return clientOf(root).onOneConnection(work)
}

/** Inserts rows whose values are large: the quickest way that each database has for them. */
export function inserter(into: CopiedInto): (db: Db, rows: readonly CopiedRow[]) => Promise<void> {
  return (db, rows) => clientOf(db).insertRows(into, rows)
}

/**
 * Statements whose text depends on the fields that are given. The first `most` texts are prepared, all others are not: what
 * is prepared stays with a connection for as long as that lives, and a caller may name any set of fields.
 */
export class Texts {
  private readonly known = new Map<string, StatementText>()
  private readonly most: number

  constructor(most = 50) {
    this.most = most
  }

  private of(sql: string): StatementText {
    const known = this.known.get(sql)
    if (known !== undefined) return known
    const text = textOf(sql)
    if (this.known.size >= this.most) return { ...text, name: null }
    this.known.set(sql, text)
    return text
  }

  /** Returns the number of rows that the statement changed. */
  change(db: Db, sql: string, values: readonly Value[]): Promise<number> {
    return clientOf(db).change(this.of(sql), values)
  }

  /** Returns the rows that a statement with `returning` changed. */
  async changed(db: Db, sql: string, values: readonly Value[]): Promise<unknown[]> {
    return (await clientOf(db).sendRows(this.of(sql), values)).answer
  }

  async first(db: Db, sql: string, values: readonly Value[]): Promise<unknown> {
    return (await clientOf(db).readRows(this.of(sql), values))[0]
  }
}

/** The columns that a row's schema reads, for `select`. */
export function columnsOf(row: z.ZodObject | z.ZodPipe<z.ZodObject>): string {
  return Object.keys(('in' in row ? row.in : row).shape).join(', ')
}

function textOf(sql: string): StatementText {
  let count = 0
  return {
    sqlite: sql
      .replace(locked, '')
      .replace(
        givenRows,
        (_, columns: string) => `with given as materialized (select ${readFromJson(columns)} from json_each(?))`,
      )
      .replace(isGiven, '$1.$2 = given.$2')
      .replaceAll(list, 'in (select value from json_each(?))')
      .replaceAll(readFirst, 'in ($1)'),
    postgres: sql
      .replace(locked, ' for no key update')
      .replace(givenRows, 'with given as materialized (select * from json_to_recordset(?::json) as row ($1))')
      .replace(isGiven, (_, table: string, key: string, free?: string) => givenBy(table, key, free !== undefined))
      .replaceAll(readFirst, '= any(array($1))')
      .replaceAll(listOrValue, (found) => (found === '?' ? `$${++count}` : `= any($${++count})`)),
    name: `svc_${hash('sha1', sql)}`,
  }
}

const locked = / locked$/
const givenRows = /^with given \(([^)]*)\) as \?/
const isGiven = /\b(\w+)\.(\w+) is given( and free)?/

/** The list of keys has PostgreSQL take their index: it does not know how many rows a JSON text holds. */
function givenBy(table: string, key: string, areFree: boolean): string {
  const keys = `any(array(select ${key} from given))`
  const free = `any(array(select ${key} from ${table} where ${key} = ${keys} for no key update skip locked))`
  return `${table}.${key} = given.${key} and ${table}.${key} = ${areFree ? free : keys}`
}

/** The columns of a list such as `id text, fence bigint` out of a JSON object. */
const readFromJson = (columns: string) => columns.replaceAll(/(\w+) \w+/g, "value ->> '$1' as $1")
const list = /\bin \?/g
const readFirst = /\bin \[([^\]]*)\]/g
const listOrValue = /\bin \?|\?/g

const clientOf = ({ client }: Askable): StatementClient => client as StatementClient

/** The answers that nothing in a transaction waits for but its end. */
const answersOf = new WeakMap<object, Promise<unknown>[]>()

/** Begins to collect them for a transaction. */
export function collectAnswers(tx: Db): readonly Promise<unknown>[] {
  const answers: Promise<unknown>[] = []
  answersOf.set(tx, answers)
  return answers
}

/**
 * Waits for the answer of a statement that is sent and on which nothing in the transaction depends: `inTransaction` looks at it once the
 * commit is sent behind it. PostgreSQL commits nothing when the statement failed, and the transaction ends with that failure, or is done
 * again for it. Everywhere else, in a savepoint too, it resolves when the answer is there.
 */
export async function awaitedAtEnd(db: Db, answer: Promise<unknown>): Promise<void> {
  const answers = answersOf.get(db)
  if (answers === undefined) return void (await answer)
  // The failure is handled until `inTransaction` looks at it.
  answer.catch(() => undefined)
  answers.push(answer)
}
