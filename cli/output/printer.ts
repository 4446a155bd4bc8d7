import type { Look } from '../../shared/api/looks/look.ts'
import { looks } from '../../shared/api/looks/looks.ts'
import { textAt } from '../replies/fields.ts'
import { paintFor, type Colours } from './colours.ts'
import { columnsOf, guessedLook } from './guessed-look.ts'
import { tableOf, type PrintOptions, type Table } from './list.ts'
import { localLooks } from './local-looks.ts'
import { rowsIn, type Shape } from './shape.ts'
import { recordText } from './record.ts'
import { thingsInRecord, thingsInRows } from './things.ts'
import { jsonText, plainText } from './terminal-text.ts'

// Tables and records for people, and the same without colours and cuts for pipes. Loaded when such a result is printed.

export interface PrinterOptions {
  width: number | null
  isPlain: boolean
  colours: Colours
  /** In ms. */
  now: number
}

/** What goes to standard output, and a remark about it for standard error. */
interface Printed {
  text: string
  remark: string | null
}

export interface Printer {
  /** Finds out what people call the things in it. To be called with each value before it is printed. */
  prepare(value: unknown): Promise<void>
  whole(value: unknown): Printed
  /** One page of a list that is printed as a whole. */
  page(value: unknown): Printed
  end(): Printed
}

export function createPrinter(shape: Shape, { width, isPlain, colours, now }: PrinterOptions): Printer {
  const names = new Map<string, string>()
  const options: PrintOptions = { isPlain, now, width: isPlain ? null : width, paint: paintFor(colours), names }
  const named = shape.look === undefined ? null : (looks[shape.look] ?? localLooks[shape.look] ?? null)
  let table: Table | null = null
  let many = 0
  const rowsText = (rows: readonly unknown[], isWhole: boolean) => {
    table ??= tableOf(columnsOf(named ?? guessedLook(rows)), options, isWhole)
    many += rows.length
    return rows.length === 0 ? '' : table.rows(rows)
  }
  const endText = () => (many === 0 ? (isPlain ? '' : '(none)\n') : table!.end())
  return {
    async prepare(value) {
      if (shape.nameThings === undefined || named === null) return
      const rows = rowsOf(value, shape)
      const wanted =
        rows === null ? thingsInRecord(value, lookOfRecord(value, named)) : thingsInRows(rows, columnsOf(named))
      const missing = new Map(
        [...wanted].map(([kind, ids]) => [kind, new Set([...ids].filter((id) => !names.has(id)))] as const),
      )
      for (const [id, name] of await shape.nameThings(missing)) names.set(id, name)
    },
    whole(value) {
      const rows = rowsOf(value, shape)
      if (rows === null) return { text: single(value, named, options), remark: null }
      const text = rowsText(rows, true) + endText()
      const more = moreOf(value, shape)
      if (more === null) return { text, remark: null }
      return isPlain
        ? { text, remark: `svc: there are more (${more})` }
        : { text: `${text}${options.paint(`(more: ${more})`, 'dim')}\n`, remark: null }
    },
    page: (value) => ({ text: rowsText(rowsOf(value, shape) ?? [], false), remark: null }),
    end: () => ({ text: endText(), remark: null }),
  }
}

/** The rows without the empty slots of ids that are unknown. */
const rowsOf = (value: unknown, shape: Shape) => rowsIn(value, shape)?.filter((row) => row !== null) ?? null

function single(value: unknown, named: Look | null, options: PrintOptions): string {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return `${jsonText(value, 2)}\n`
  return recordText(value, lookOfRecord(value, named), options)
}

function lookOfRecord(value: unknown, named: Look | null): Look {
  const changeLook = textAt(value, 'object') === 'platform_change' ? looks['PlatformChange'] : undefined
  return changeLook ?? named ?? guessedLook([value])
}

function moreOf(value: unknown, { nextFlag, hasAll = false }: Shape): string | null {
  const next = textAt(value, 'nextCursor')
  if (next === null) return null
  const cursor = plainText(next)
  if (nextFlag === undefined) return `nextCursor ${cursor}`
  return `${nextFlag} ${cursor}${hasAll ? ', or --all' : ''}`
}
