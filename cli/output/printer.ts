import type { Look } from '../../shared/api/looks/look.ts'
import { looks } from '../../shared/api/looks/looks.ts'
import { textAt } from '../replies/fields.ts'
import { paintFor } from './colours.ts'
import { columnsOf, guessedLook } from './guessed-look.ts'
import { tableOf, type PrintOptions, type Table } from './list.ts'
import { localLooks } from './local-looks.ts'
import { rowsIn, type Shape } from './shape.ts'
import { recordText } from './record.ts'
import { jsonText, plainText } from './terminal-text.ts'

// Tables and records for people, and the same without colours and cuts for pipes. Loaded when such a result is printed.

export interface PrinterOptions {
  width: number | null
  isPlain: boolean
  hasColours: boolean
  /** In ms. */
  now: number
}

/** What goes to standard output, and a remark about it for standard error. */
interface Printed {
  text: string
  remark: string | null
}

export interface Printer {
  whole(value: unknown): Printed
  /** One page of a list that is printed as a whole. */
  page(value: unknown): Printed
  end(): Printed
}

export function createPrinter(shape: Shape, { width, isPlain, hasColours, now }: PrinterOptions): Printer {
  const options: PrintOptions = { isPlain, now, width: isPlain ? null : width, paint: paintFor(hasColours) }
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
  const changeLook = textAt(value, 'object') === 'platform_change' ? looks['PlatformChange'] : undefined
  return recordText(value, changeLook ?? named ?? guessedLook([value]), options)
}

function moreOf(value: unknown, { nextFlag, hasAll = false }: Shape): string | null {
  const next = textAt(value, 'nextCursor')
  if (next === null) return null
  const cursor = plainText(next)
  if (nextFlag === undefined) return `nextCursor ${cursor}`
  return `${nextFlag} ${cursor}${hasAll ? ', or --all' : ''}`
}
