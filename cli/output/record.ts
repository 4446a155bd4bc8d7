import type { Column, Look, Next, Section, Shown } from '../../shared/api/looks/look.ts'
import { cellOf, rawAt, valuesAt, type Cell } from './cell.ts'
import { tableOf, type PrintOptions } from './list.ts'
import { jsonText, plainText } from './terminal-text.ts'
import { pad, widthOf, wrap, wrapLines } from './width.ts'

// A single record: its title, its facts in two columns, its text below, and what to do next. What is empty is left out.

/** Text of several lines stands indented, so that none of its lines can pass for a fact. */
const indent = '  '

export function recordText(reply: unknown, look: Look, options: PrintOptions): string {
  const record = look.of === undefined ? reply : rawAt(reply, look.of)
  const title = look.title === undefined ? '' : cellOf(record, look.title, options).text
  const facts = (look.facts ?? look.columns)
    .flatMap(([name, shown]) => factOf(record, [name, shown], options))
    .filter(({ cell }) => cell.text !== title)
  return options.isPlain ? plainRecord(record, look, facts, options) : shownRecord(record, look, facts, options)
}

interface Fact {
  name: string
  cell: Cell
}

const spelledOut: ReadonlySet<string> = new Set(['ID', 'UUID', 'SHA256'])

function factOf(record: unknown, [name, shown]: Column, options: PrintOptions): Fact[] {
  const cell = cellOf(record, shown, options)
  const isHeading = name === name.toUpperCase() && !spelledOut.has(name)
  const word = isHeading ? name.charAt(0) + name.slice(1).toLowerCase() : name
  return cell.text === '' ? [] : [{ name: word, cell }]
}

/** Without colours `name<TAB>value` for each fact, and `--` before the text, as a program reads it. */
function plainRecord(record: unknown, look: Look, facts: readonly Fact[], options: PrintOptions): string {
  const heads = [
    ...(look.title === undefined ? [] : factOf(record, ['title', look.title], options)),
    ...(look.under ?? []).flatMap((shown) => factOf(record, [nameOf(shown), shown], options)),
  ]
  const seen = new Set<string>()
  const lines = [...heads, ...facts].flatMap(({ name, cell }) => {
    const line = `${name.toLowerCase()}\t${options.paint(cell.text, cell.tone)}\n`
    return seen.has(line) ? [] : [(seen.add(line), line)]
  })
  const sections = (look.sections ?? []).flatMap((section) => {
    const text = sectionText(record, section, options)
    return text === '' ? [] : [`--${section.heading === '' ? '' : ` ${section.heading.toLowerCase()}`}\n${text}`]
  })
  return [...lines, ...sections].join('')
}

/** What the line below a title calls itself where each value needs a name: the last word of its path. */
function nameOf(shown: Shown): string {
  const path =
    'at' in shown
      ? [shown.at].flat()[0]!
      : (/\{(?:\w+ )?([\w.]+)\}/.exec('text' in shown ? shown.text : '')?.[1] ?? 'about')
  return path.split('.').at(-1)!
}

function shownRecord(record: unknown, look: Look, facts: readonly Fact[], options: PrintOptions): string {
  const title = look.title === undefined ? '' : cellOf(record, look.title, options).text
  const under = (look.under ?? []).map((shown) => cellOf(record, shown, options)).filter(({ text }) => text !== '')
  const { width, paint } = options
  const titleLines = title === '' ? [] : wrap(title, width ?? Infinity)
  const head = [...titleLines.map((line) => `${paint(line, 'bold')}\n`), underText(under, options)].join('')
  const parts = [
    head,
    factLines(facts, options),
    ...(look.sections ?? []).map((section) => {
      const text = sectionText(record, section, options)
      const heading = section.heading === '' ? '' : `${options.paint(section.heading, 'bold')}\n`
      return text === '' ? '' : heading + text
    }),
    nextLine(record, look.next ?? [], options),
  ]
  return parts.filter((part) => part !== '').join('\n')
}

/** The cells in a row, on several lines where they do not fit one. */
function underText(cells: readonly Cell[], { width, paint }: PrintOptions): string {
  let text = ''
  let taken = 0
  for (const cell of cells) {
    const more = widthOf(cell.text)
    const isNewLine = text === '' || taken + 3 + more > (width ?? Infinity)
    const shown =
      isNewLine && width !== null
        ? wrap(cell.text, width)
            .map((line) => paint(line, cell.tone))
            .join('\n')
        : paint(cell.text, cell.tone)
    text += `${text === '' ? '' : isNewLine ? ' ·\n' : ' · '}${shown}`
    taken = isNewLine ? more : taken + 3 + more
  }
  return text === '' ? '' : `${text}\n`
}

/** Two facts share a line where both have room in their half. */
function factLines(facts: readonly Fact[], { width, paint }: PrintOptions): string {
  if (facts.length === 0) return ''
  const whole = width ?? 100
  const nameWidth = Math.max(...facts.map(({ name }) => widthOf(name)))
  const half = Math.floor((Math.min(whole, 120) - 2) / 2)
  const valueOf = ({ name, cell }: Fact) => `${paint(pad(name, nameWidth), 'dim')}  ${paint(cell.text, cell.tone)}`
  const isShort = ({ cell }: Fact) => nameWidth + 2 + widthOf(cell.text) <= half
  const lines: string[] = []
  for (let at = 0; at < facts.length; at++) {
    const [fact, next] = [facts[at]!, facts[at + 1]]
    if (isShort(fact) && next !== undefined && isShort(next)) {
      const left = nameWidth + 2 + widthOf(fact.cell.text)
      lines.push(`${valueOf(fact)}${' '.repeat(half - left + 2)}${valueOf(next)}`)
      at++
      continue
    }
    const [first = '', ...more] = wrap(fact.cell.text, Math.max(20, whole - nameWidth - 2))
    lines.push(valueOf({ name: fact.name, cell: { ...fact.cell, text: first } }))
    for (const line of more) lines.push(`${' '.repeat(nameWidth + 2)}${line}`)
  }
  return `${lines.join('\n')}\n`
}

function sectionText(record: unknown, section: Section, options: PrintOptions): string {
  if ('rows' in section) {
    const found = rawAt(record, section.rows)
    const rows = (Array.isArray(found) ? found : [found]).filter((row) => row !== null && row !== undefined)
    if (rows.length === 0) return ''
    const table = tableOf(section.columns, options, true)
    return table.rows(rows) + table.end()
  }
  if ('json' in section) {
    const value = rawAt(record, section.json)
    const isEmpty =
      value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)
    return isEmpty ? '' : indented(jsonText(value, 2), options)
  }
  if (section.unless !== undefined && valuesAt(record, section.unless).length > 0) return ''
  for (const path of [section.text].flat()) {
    const text = valuesAt(record, path)
      .map((value) => (typeof value === 'string' ? value : jsonText(value)))
      .join('\n')
    if (text.trim() === '') continue
    const { isPlain, width } = options
    const shown = plainText(text)
    return indented(isPlain || width === null ? shown : wrapLines(shown, Math.max(20, width - indent.length)), options)
  }
  return ''
}

function indented(text: string, { isPlain }: PrintOptions): string {
  const lines = text.replace(/\n+$/, '').split('\n')
  return lines.map((line) => `${isPlain || line === '' ? '' : indent}${line}\n`).join('')
}

function nextLine(record: unknown, next: readonly Next[], options: PrintOptions): string {
  const fitting = next.find(({ when }) => {
    if (when === undefined) return true
    const [value] = valuesAt(record, when.at)
    const isThere = value !== undefined && value !== false
    return when.is.some((wanted) => (typeof wanted === 'boolean' ? wanted === isThere : wanted === value))
  })
  if (fitting === undefined) return ''
  const { say, more } = fitting
  const told = (sentence: string, word: string) => {
    const { text } = cellOf(record, { as: 'say', text: sentence }, options)
    return text === '' ? '' : `${options.paint(`${word.padStart(4)}: ${text}`, 'dim')}\n`
  }
  return told(say, 'Next') + (more === undefined ? '' : told(more.say, more.word))
}
