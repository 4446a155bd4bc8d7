import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import { int } from './columns.ts'
import { dialectOfDb } from './dialect.ts'
import type { Db, Tx } from './handle.ts'
import { query } from './statement.ts'

// The index of words: FTS5 on SQLite, tsvector with GIN on PostgreSQL. Both get words that are made by us, of letters, digits
// and marks alone, and neither splits or folds them again; so both find the same rows. A row has no text and no positions,
// only which words stand in which part of it.

/** The parts of a row from the narrowest to the whole: each part has the words of those before it as well. */
export const wordParts = ['title', 'heading', 'often', 'body'] as const
export type WordPart = (typeof wordParts)[number]

/** The items must all be found; of an item one alternative, with all of its words. */
export type WordExpression = readonly (readonly (readonly SearchedWord[])[])[]

export interface SearchedWord {
  text: string
  /** Words that begin so are found, too. */
  isPrefix: boolean
}

/** Creates the index. Called by the migration. */
export async function createWordIndex(tx: Tx): Promise<void> {
  if (dialectOfDb(tx) === 'sqlite') {
    // `ascii` splits at nothing but the blanks between our words: `unicode61` would split at marks of Thai or Hindi.
    await tx.raw(
      `create virtual table search_index using fts5(workspace, ${wordParts.join(', ')},
       content = '', contentless_delete = 1, detail = column, tokenize = 'ascii')`,
    )
    return
  }
  await tx.schema.createTable('search_index', (t) => {
    // Named as it is in FTS5.
    t.bigint('rowid').primary()
    for (const part of wordParts) t.specificType(part, 'tsvector').notNullable()
  })
  // Entries that wait to be put into the index would be read by each search.
  await tx.raw(`create index search_index_words on search_index using gin (${wordParts.join(', ')})
    with (fastupdate = off)`)
}

/** Words between blanks. A part need not repeat those of narrower ones. */
export type WordsByPart = Readonly<Record<WordPart, string>>

export async function insertWords(
  db: Db,
  { id, workspaceId, words }: { id: number; workspaceId: WorkspaceUuid; words: WordsByPart },
): Promise<void> {
  if (dialectOfDb(db) === 'sqlite') {
    const values = [id, sqliteWorkspace(workspaceId), ...wordParts.map((part) => words[part])]
    await db.raw(
      `insert into search_index (rowid, workspace, ${wordParts.join(', ')}) values (?, ?, ?, ?, ?, ?)`,
      values,
    )
    return
  }
  let lexemes = postgresWorkspace(workspaceId)
  const values = wordParts.map((part) => (lexemes = `${lexemes} ${words[part].trim()}`.trim()))
  const vectors = wordParts.map(() => `array_to_tsvector(string_to_array(?, ' '))`)
  await db.raw(`insert into search_index (rowid, ${wordParts.join(', ')}) values (?, ${vectors.join(', ')})`, [
    id,
    ...values,
  ])
}

export async function removeWords(db: Db, ids: readonly number[]): Promise<void> {
  await db('search_index')
    .whereIn('rowid', [...ids])
    .delete()
}

const idRow = z.object({ id: int })
const onSqlite = query(
  'select rowid as id from search_index where search_index match ? order by rowid desc limit ?',
  idRow,
)
/**
 * Searches a part on PostgreSQL. The list is materialized: PostgreSQL would otherwise walk all rows by their number where it takes a rare
 * word for a frequent one.
 */
const onPostgres = (part: WordPart) =>
  query(
    `with found as materialized (select rowid as id from search_index where ${part} @@ ?::tsquery)
     select id from found order by id desc limit ?`,
    idRow,
  )
const byPart = {
  title: onPostgres('title'),
  heading: onPostgres('heading'),
  often: onPostgres('often'),
  body: onPostgres('body'),
}

/** Lists the rows of a workspace that have the words in this part of them, newest first. */
export async function listByWords(
  db: Db,
  {
    workspaceId,
    words,
    part,
    limit,
  }: { workspaceId: WorkspaceUuid; words: WordExpression; part: WordPart; limit: number },
): Promise<number[]> {
  const rows =
    dialectOfDb(db) === 'sqlite'
      ? await onSqlite.list(db, [matchText(workspaceId, words, part), limit])
      : await byPart[part].list(db, [tsqueryText(workspaceId, words), limit])
  return rows.map(({ id }) => id)
}

function matchText(workspaceId: WorkspaceUuid, words: WordExpression, part: WordPart): string {
  const columns = wordParts.slice(0, wordParts.indexOf(part) + 1).join(' ')
  const found = join(words, [' AND ', ' OR '], ({ text, isPrefix }) => `"${text}"${isPrefix ? '*' : ''}`)
  return `{workspace} : "${sqliteWorkspace(workspaceId)}" AND {${columns}} : (${found})`
}

function tsqueryText(workspaceId: WorkspaceUuid, words: WordExpression): string {
  const found = join(words, [' & ', ' | '], ({ text, isPrefix }) => `'${text}'${isPrefix ? ':*' : ''}`)
  return `'${postgresWorkspace(workspaceId)}' & (${found})`
}

function join(words: WordExpression, [and, or]: readonly [string, string], write: (word: SearchedWord) => string) {
  return words
    .map((item) => `(${item.map((alternative) => `(${alternative.map(write).join(and)})`).join(or)})`)
    .join(and)
}

/** SQLite has the workspace as one word in a column of its own. */
const sqliteWorkspace = (workspaceId: WorkspaceUuid): string => workspaceId.replaceAll(/[^A-Za-z0-9]/g, '')
/** PostgreSQL has it among the words of the text, in a form that none of those has. */
const postgresWorkspace = (workspaceId: WorkspaceUuid): string => `@${sqliteWorkspace(workspaceId)}`

/** The tables that FTS5 makes for itself. */
export const wordIndexTables: readonly string[] = ['config', 'data', 'docsize', 'idx'].map(
  (name) => `search_index_${name}`,
)
