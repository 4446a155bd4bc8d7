import type { Column } from '../../shared/api/looks/look.ts'
import { cellOf, type Cell, type CellOptions } from './cell.ts'
import type { Paint } from './colours.ts'
import { cut, widthOf } from './width.ts'

/** How to print for whoever reads: a person on a terminal, or a program. */
export interface PrintOptions extends CellOptions {
  /** Columns of the terminal; null: unlimited. */
  width: number | null
  paint: Paint
}

/** A table that is printed page by page; the first page decides which columns it has and how wide they are. */
export interface Table {
  rows(records: readonly unknown[]): string
  /** Says what was left out. */
  end(): string
}

/** What is longer than a UUID is cut, too, or one odd word would take all room. */
const longestWhole = 36
/** Text is not cut below this many columns, unless its column says more: another column gives way. */
const leastText = 16
const gap = 2

interface Layout {
  shown: readonly { at: number; width: number }[]
  leftOut: number
}

/** `isWhole`: all rows come in one page, so a column that is empty in all of them may be left out. */
export function tableOf(columns: readonly Column[], options: PrintOptions, isWhole = false): Table {
  let layout: Layout | null = null
  // A character that people see as one may be of several.
  const cellOptions = options.width === null ? options : { ...options, maxChars: options.width * 8 }
  return {
    rows(records) {
      const cells = records.map((record) => columns.map(([, shown]) => cellOf(record, shown, cellOptions)))
      if (options.isPlain)
        return cells.map((row) => `${row.map((cell) => options.paint(cell.text, cell.tone)).join('\t')}\n`).join('')
      const isFirst = layout === null
      layout ??= fit(columns, cells, { width: options.width, isWhole })
      const { shown } = layout
      const header = columns.map(([title]): Cell => ({ text: title, tone: 'dim', mayBeCut: true }))
      return [...(isFirst ? [header] : []), ...cells].map((row) => lineOf(row, shown, options.paint)).join('')
    },
    end() {
      const many = layout?.leftOut ?? 0
      return many === 0
        ? ''
        : options.paint(`(${many} column${many === 1 ? '' : 's'} left out: --json shows all)`, 'dim') + '\n'
    },
  }
}

function lineOf(row: readonly Cell[], shown: Layout['shown'], paint: Paint): string {
  const texts = shown.map(({ at, width }, place) => {
    const { text, tone } = row[at]!
    const fitted = cut(text === '' ? '-' : text, width)
    const isLast = place === shown.length - 1
    return paint(fitted, text === '' ? 'dim' : tone) + (isLast ? '' : ' '.repeat(width - widthOf(fitted)))
  })
  return `${texts.join(' '.repeat(gap)).trimEnd()}\n`
}

/** Leaves out columns from the end until the rest fits, with text cut where that is enough. */
function fit(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { width, isWhole }: { width: number | null; isWhole: boolean },
): Layout {
  const natural = columns.map(([title], at) =>
    Math.max(widthOf(title), ...rows.map((row) => widthOf(row[at]!.text, width ?? Infinity)), 1),
  )
  const isText = columns.map((_, at) => rows.some((row) => row[at]!.mayBeCut) || natural[at]! > longestWhole)
  const isEmpty = (at: number) => isWhole && at > 1 && rows.every((row) => row[at]!.text === '')
  const all = columns.flatMap((_, at) => (isEmpty(at) ? [] : [at]))
  for (let many = all.length; many > 0; many--) {
    const kept = all.slice(0, many)
    const widths = shrink(
      kept.map((at) => ({ natural: natural[at]!, isText: isText[at]!, least: leastOf(columns[at]![2], width) })),
      width,
      many === 1,
    )
    if (widths !== null)
      return { shown: kept.map((at, place) => ({ at, width: widths[place]! })), leftOut: all.length - many }
  }
  return { shown: [], leftOut: all.length }
}

/** On a narrow terminal no column keeps so much that nothing else is seen. */
const leastOf = (wanted: number | undefined, width: number | null): number =>
  wanted === undefined || width === null ? leastText : Math.max(leastText, Math.min(wanted, Math.floor(width * 0.4)))

/** The widths in which the columns fit, or null. The widest text is cut first. */
function shrink(
  columns: readonly { natural: number; isText: boolean; least: number }[],
  width: number | null,
  isLast: boolean,
): number[] | null {
  const widths = columns.map(({ natural }) => natural)
  if (width === null) return widths
  const room = width - gap * (columns.length - 1)
  let over = widths.reduce((sum, each) => sum + each, 0) - room
  if (isLast) return [Math.max(1, Math.min(widths[0]!, room))]
  while (over > 0) {
    const widest = columns.reduce(
      (best, { isText, least }, at) =>
        isText && widths[at]! > least && widths[at]! > (widths[best] ?? 0) * (columns[best]?.isText === true ? 1 : 0)
          ? at
          : best,
      -1,
    )
    if (widest === -1) return null
    const others = columns.map(({ isText }, at) => (isText && at !== widest ? widths[at]! : 0))
    const next = Math.max(columns[widest]!.least, ...others.filter((each) => each < widths[widest]!))
    const step = Math.min(over, Math.max(1, widths[widest]! - next))
    widths[widest] = widths[widest]! - step
    over -= step
  }
  return widths
}
