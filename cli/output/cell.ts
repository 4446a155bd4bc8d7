import type { Path, Shown } from '../../shared/api/looks/look.ts'
import { toneOf, type Tone } from './colours.ts'
import { oneLine } from './terminal-text.ts'
import { duration, relativeTime, shortDuration } from './times.ts'

/** A value as it is printed, on one line and without control characters. */
export interface Cell {
  /** '' when there is nothing to show. */
  text: string
  tone: Tone | null
  /** Text that a list may cut; ids and times are shown whole. */
  mayBeCut: boolean
}

export interface CellOptions {
  /** For a program: times, sizes and money stay as the API writes them. */
  isPlain: boolean
  /** In ms. */
  now: number
  /** Of a longer text only the beginning is looked at. */
  maxChars?: number
  /** What people call the things that have these ids. */
  names?: ReadonlyMap<string, string>
}

export function cellOf(record: unknown, shown: Shown, options: CellOptions): Cell {
  if (shown.as === 'first') {
    const cells = shown.of.map((each) => cellOf(record, each, options))
    return cells.find(({ text }) => text !== '') ?? emptyCell
  }
  if (shown.as === 'case') return cellOf(record, chosenCase(record, shown), options)
  if (shown.as === 'status') return statusCell(record, shown, options)
  const text = oneLine(textOf(record, shown, options), options.maxChars)
  return { text, tone: shown.as === 'time' || shown.as === 'span' ? 'dim' : null, mayBeCut: mayBeCut.has(shown.as) }
}

/** What is shown of a record whose look differs by a word in it. */
export function chosenCase(record: unknown, { at, of, else: otherwise }: Extract<Shown, { as: 'case' }>): Shown {
  const [word] = valuesAt(record, at)
  return (typeof word === 'string' && Object.hasOwn(of, word) ? of[word] : undefined) ?? otherwise
}

const emptyCell: Cell = { text: '', tone: null, mayBeCut: false }
const mayBeCut: ReadonlySet<string> = new Set(['text', 'say', 'pairs', 'choice'])

/** Reasons that say no more than the state itself. */
const saysNothing: ReadonlySet<string> = new Set(['completed', 'ok'])

function statusCell(
  record: unknown,
  { at, why = [], waits }: Extract<Shown, { as: 'status' }>,
  options: CellOptions,
): Cell {
  const [state] = valuesAt(record, at)
  const waitsFor = waits === undefined ? undefined : valuesAt(record, waits.at)[0]
  if (waitsFor !== undefined) {
    const text = oneLine(`waits: ${waits?.as ?? wordOf(waitsFor)}`, options.maxChars)
    return { text, tone: 'waits', mayBeCut: false }
  }
  if (typeof state !== 'string') return emptyCell
  const reasons = [...new Set(why.flatMap((path) => valuesAt(record, path)).map(wordOf))].filter(
    (reason) => reason !== wordOf(state) && !saysNothing.has(reason),
  )
  const told = reasons.length === 0 ? wordOf(state) : `${wordOf(state)} (${reasons.join(', ')})`
  return { text: oneLine(told, options.maxChars), tone: toneOf(state), mayBeCut: reasons.length > 0 }
}

function textOf(
  record: unknown,
  shown: Exclude<Shown, { as: 'first' | 'status' | 'case' }>,
  options: CellOptions,
): string {
  switch (shown.as) {
    case 'say':
      return sentence(record, shown.text, options)
    case 'span':
      return spanText(record, shown, options)
    case 'flag':
      return valuesOf(record, shown.at)
        .map((value) => (value === true ? shown.yes : value === false ? shown.no : ''))
        .join(', ')
    case 'count':
      return countText(record, shown.at)
    case 'choice':
      return choiceText(record, shown)
    default:
      return valuesOf(record, shown.at)
        .map((value) => single(value, shown.as, options))
        .filter((text) => text !== '')
        .join(', ')
  }
}

function single(value: unknown, as: Shown['as'], { isPlain, now, names = noNames }: CellOptions): string {
  switch (as) {
    case 'word':
      return wordOf(value)
    case 'time':
      return typeof value === 'string' && !isPlain ? relativeTime(value, now) : plainWord(value)
    case 'duration':
      return isPlain ? `${Math.round(Number(value) / 1_000)}s` : duration(Number(value))
    case 'size':
      return typeof value === 'number' && !isPlain ? sizeText(value) : plainWord(value)
    case 'dollars':
      return isPlain ? plainWord(value) : dollarsText(Number(value))
    case 'cents':
      return typeof value === 'number' && !isPlain ? `$${(value / 100).toFixed(2)}` : plainWord(value)
    case 'pairs':
      return pairsText(value, names)
    case 'person':
    case 'thing':
      return named(value, names)
    default:
      return plainWord(value)
  }
}

const noNames: ReadonlyMap<string, string> = new Map()

function named(value: unknown, names: ReadonlyMap<string, string>): string {
  const text = plainWord(value)
  return names.get(text) ?? text
}

/** The values at the first of the paths that leads to any; lists on the way and at its end are taken apart. */
function valuesOf(record: unknown, path: Path): unknown[] {
  for (const one of typeof path === 'string' ? [path] : path) {
    const found = valuesAt(record, one)
    if (found.length > 0) return found
  }
  return []
}

export const valuesAt = (record: unknown, path: string): unknown[] =>
  [rawAt(record, path)].flat(3).filter((value) => value !== null && value !== undefined && value !== '')

/** What stands at the path, a list as a list. */
export function rawAt(record: unknown, path: string): unknown {
  let at: unknown = record
  for (const key of path.split('.')) at = Array.isArray(at) ? at.flat(3).map((item) => own(item, key)) : own(at, key)
  return at
}

const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined

function choiceText(record: unknown, { at, among }: Extract<Shown, { as: 'choice' }>): string {
  const options = [rawAt(record, among)].flat(1)
  return valuesAt(record, at)
    .map((key) =>
      plainWord(
        own(
          options.find((option) => own(option, 'key') === key),
          'label',
        ) ?? key,
      ),
    )
    .join(', ')
}

function countText(record: unknown, path: Path): string {
  for (const one of typeof path === 'string' ? [path] : path) {
    const value = rawAt(record, one)
    if (typeof value === 'number') return String(value)
    if (Array.isArray(value)) return String(value.length)
  }
  return ''
}

function sentence(record: unknown, text: string, options: CellOptions): string {
  let isWhole = true
  const said = text.replaceAll(/\{(?:(\w+) )?([\w.]+)\}/g, (_, as: string | undefined, path: string) => {
    const raw = rawAt(record, path)
    const value = as === 'list' || !Array.isArray(raw) ? toldAs(as, raw, options) : String(raw.length)
    if (value === '') isWhole = false
    return value
  })
  return isWhole ? said : ''
}

function toldAs(as: string | undefined, raw: unknown, options: CellOptions): string {
  if (as === 'list')
    return [raw]
      .flat()
      .filter((item) => item != null)
      .map(wordOf)
      .join(', ')
  return raw == null ? '' : saidAs(as, raw, options)
}

function saidAs(as: string | undefined, raw: unknown, options: CellOptions): string {
  switch (as) {
    case undefined:
      return single(raw, 'text', options)
    case 'time':
    case 'word':
      return single(raw, as, options)
    case 'since':
      return sinceText(plainWord(raw), options)
    case 'took':
      return options.isPlain ? `${Math.round(Number(raw))} ms` : shortDuration(Number(raw))
    default:
      return single(raw, 'thing', options)
  }
}

function sinceText(text: string, { isPlain, now }: CellOptions): string {
  const at = Date.parse(text)
  return isPlain || Number.isNaN(at) ? `since ${text}` : `for ${duration(now - at)}`
}

function spanText(record: unknown, { at, to }: { at: string; to: string }, { isPlain, now }: CellOptions): string {
  const [from, until] = [at, to].map((path) => Date.parse(plainWord(valuesAt(record, path)[0] ?? '')))
  if (from === undefined || Number.isNaN(from)) return ''
  const isOver = until !== undefined && !Number.isNaN(until)
  if (isPlain) return isOver ? `${Math.round((until - from) / 1_000)}s` : ''
  return duration((isOver ? until : now) - from)
}

/** A person or an agent by the handle, else the name or the id; a permission rule as people write it; anything else by its name. */
export function plainWord(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object' || value === null) return ''
  const tool = own(value, 'tool')
  if (typeof tool === 'string') return `${tool}(${plainWord(own(value, 'pattern'))})`
  for (const key of ['handle', 'name', 'label', 'title', 'id', 'type']) {
    const found = own(value, key)
    if (typeof found === 'string' && found !== '') return found
  }
  return pairsText(value)
}

function pairsText(value: unknown, names = noNames): string {
  if (typeof value !== 'object' || value === null) return plainWord(value)
  return Object.entries(value)
    .filter(([, item]) => item !== null && item !== undefined && item !== '')
    .slice(0, 20)
    .map(
      ([key, item]) =>
        `${key}=${(Array.isArray(item) ? item.slice(0, 20) : [item]).map((one) => named(one, names)).join(',')}`,
    )
    .join(' ')
}

const wordOf = (value: unknown): string => plainWord(value).replaceAll('_', ' ')

function sizeText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let [size, at] = [bytes, 0]
  for (; size >= 1_000 && at < units.length - 1; at++) size /= 1_000
  return `${at === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[at]}`
}

export function dollarsText(dollars: number): string {
  if (Number.isNaN(dollars)) return ''
  return dollars > 0 && dollars < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`
}
