import { fieldAt, listAt } from '../replies/fields.ts'
import { jsonText, plainText } from './terminal-text.ts'

/** Tables for people: the rows of a list in columns, or the fields of one object below each other. */
export interface TableOptions {
  /** Dotted paths; null: the most telling fields. */
  columns: readonly string[] | null
  /** Columns of the terminal; null: unlimited. */
  width: number | null
  /** The flag that reads the next page; null when the command has none. */
  nextFlag: string | null
}

const listKeys = ['data', 'devices', 'sources', 'runs']
const tellingKeys = [
  'id',
  'shortId',
  'publicId',
  'userId',
  'handle',
  'name',
  'displayName',
  'title',
  'slug',
  'role',
  'email',
  'status',
]
const maxCell = 60

/** Null when the value is neither a list nor an object with fields. */
export function renderTable(value: unknown, options: TableOptions): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  if (Object.keys(value).length === 0) return null
  const listKey = listKeys.find((key) => Array.isArray((value as Record<string, unknown>)[key]))
  if (listKey === undefined) return renderObject(value as Record<string, unknown>)
  const rows = listAt(value, listKey).filter((row) => row !== null)
  if (rows.length === 0) return '(none)\n'
  const columns = options.columns ?? columnsFor(rows)
  const cells = [
    columns.map((column) => plainText(titleOf(column))),
    ...rows.map((row) => columns.map((column) => cellOf(fieldAt(row, ...column.split('.'))))),
  ]
  const next = fieldAt(value, 'nextCursor')
  return (
    layOut(cells, options.width) +
    (typeof next === 'string' ? `(more: ${options.nextFlag ?? 'nextCursor'} ${plainText(next)})\n` : '')
  )
}

function renderObject(value: Record<string, unknown>): string {
  const fields = Object.entries(value).map(([key, field]) => [`${plainText(key)}:`, longCellOf(field)] as const)
  // Further lines of a value stand below its first one, so that none can be taken for a field of its own.
  const indent = ' '.repeat(Math.max(...fields.map(([key]) => key.length)) + 2)
  return layOut(
    fields.map(([key, text]) => [key, text.replaceAll('\n', `\n${indent}`)]),
    null,
  )
}

function columnsFor(rows: readonly unknown[]): string[] {
  const present = new Set(rows.flatMap((row) => (typeof row === 'object' && row !== null ? Object.keys(row) : [])))
  const telling = tellingKeys.filter((key) => present.has(key))
  return telling.length > 0 ? telling : [...present].slice(0, 6)
}

const titleOf = (column: string) =>
  column
    .replaceAll('.', ' ')
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter}`)
    .toUpperCase()

function cellOf(value: unknown): string {
  const text = longCellOf(value).replaceAll(/\s+/g, ' ')
  return text.length > maxCell ? `${text.slice(0, maxCell - 1)}…` : text
}

function longCellOf(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return typeof value === 'string' ? plainText(value) : jsonText(value)
}

function layOut(rows: readonly (readonly string[])[], width: number | null): string {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!)))
      .join('  ')
      .trimEnd(),
  )
  return lines.map((line) => `${width !== null && line.length > width ? line.slice(0, width) : line}\n`).join('')
}
