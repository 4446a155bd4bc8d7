import { isCommandField } from '../../../shared/permissions/call-inputs.ts'
import { mayCover } from '../../../shared/permissions/shell/covered.ts'
import { askedCallLimits } from '../../../shared/runs/asked-call.ts'

/**
 * Returns a tool's input as a person may see it. `redactText` takes out the secrets that the run was given; a text that only looks
 * like a secret is masked. A mask never covers a character that a shell gives a meaning to, so nothing that would be
 * executed can hide behind one.
 */
export function shownArgs(input: unknown, redactText: (text: string) => string): ShownArgs {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
  const whole = isObject ? input : { value: input }
  const remembered = remember(redactText)
  for (const room of rooms) {
    const view: View = { room, redactText: remembered, isCut: false, chars: 0 }
    const args = shownValue(whole, view, { depth: 0, field: '' }) as Record<string, unknown>
    if (isTooMuch(view)) continue
    if (Buffer.byteLength(JSON.stringify(args)) <= askedCallLimits.argsBytes) return { args, isCut: view.isCut }
  }
  return { args: {}, isCut: true }
}

export interface ShownArgs {
  args: Record<string, unknown>
  /** A part of the input is not shown. */
  isCut: boolean
}

interface Room {
  chars: number
  entries: number
}
interface View {
  room: Room
  redactText: (text: string) => string
  isCut: boolean
  /** Characters written so far; once they are too many the rest is not looked at. */
  chars: number
}
const isTooMuch = (view: View): boolean => view.chars > askedCallLimits.argsBytes

/** Remembers texts, so that a long one is redacted once and not for each room. */
function remember(redactText: View['redactText']): View['redactText'] {
  const long = new Map<string, string>()
  return (text) => {
    if (text.length < 1_000) return redactText(text)
    const redacted = long.get(text) ?? redactText(text)
    long.set(text, redacted)
    return redacted
  }
}

/** The rooms for one text, tried in this order until the whole fits. */
const rooms: readonly Room[] = [16_384, 8_192, 4_096, 1_024, 256, 64]
  .map((chars) => ({ chars, entries: 200 }))
  .concat({ chars: 64, entries: 20 }, { chars: 32, entries: 4 })
const maxDepth = 12

function shownValue(value: unknown, view: View, at: { depth: number; field: string }): unknown {
  if (isTooMuch(view)) return null
  view.chars += 4
  if (typeof value === 'string') return shownText(value, view, at.field)
  if (typeof value !== 'object' || value === null) return value
  if (at.depth >= maxDepth) {
    view.isCut = true
    return '[nested too deep to be shown]'
  }
  const { entries } = view.room
  if (Array.isArray(value)) {
    const items = value.slice(0, entries).map((item) => shownValue(item, view, { ...at, depth: at.depth + 1 }))
    return value.length > entries ? [...items, more(view, value.length - entries, 'items')] : items
  }
  const fields = Object.entries(value)
  const shown: [string, unknown][] = fields
    .slice(0, entries)
    .map(([name, item]) => [shownText(name, view, ''), shownValue(item, view, { depth: at.depth + 1, field: name })])
  if (fields.length > entries) shown.push(['...', more(view, fields.length - entries, 'fields')])
  const whole = Object.fromEntries(shown)
  // One name stands for two that look the same once they are shown.
  if (Object.keys(whole).length < shown.length) view.isCut = true
  return whole
}

function shownText(text: string, view: View, field: string): string {
  const { chars } = view.room
  if (isTooMuch(view)) return ''
  // The text is redacted as a whole before it is cut: half a secret is not recognised.
  const redacted = view.redactText(text)
  const masked = maskText(redacted.slice(0, 4 * rooms[0]!.chars), field)
  const left = redacted.length - Math.min(redacted.length, 4 * rooms[0]!.chars)
  view.chars += Math.min(masked.length, chars)
  if (masked.length + left <= chars) return masked
  // The cut is not between the two halves of a character.
  const end = /[\ud800-\udbff]/.test(masked.charAt(chars - 1)) ? chars - 1 : chars
  return `${masked.slice(0, end)}${more(view, masked.length + left - end, 'characters')}`
}

function more(view: View, count: number, what: string): string {
  view.isCut = true
  return `... [${count} more ${what}]`
}

const secretName = /passw(or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|credential|authorization|cookie/i
/** Letters that mean nothing to a shell. */
const plain = String.raw`[\w.~+/=-]`
const shapes: readonly [RegExp, string][] = [
  [/\b(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|svc_(?:pat|dev|dsh)_)[\w-]{16,}/g, '[masked]'],
  [/\bAKIA[0-9A-Z]{16}\b/g, '[masked]'],
  // A run of such characters is looked at once, for a try at each `eyJ` in it would read it to its end.
  [/(?<![\w-])(?=[\w-]{11,}\.[\w-]{8,}\.[\w-]{8})[\w-]*?\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/g, '[masked]'],
  [/(:\/\/[\w.~%+-]+:)[\w.~%+-]+@/g, '$1[masked]@'],
]
/** The first group says what the rest is. */
const named: readonly RegExp[] = [
  new RegExp(String.raw`\b((?:bearer|basic)\s+)(?!\[)${plain}{8,}`, 'gi'),
  new RegExp(String.raw`((?:password|passwd|secret|token|api_?key)\w{0,100}["']?\s?[=:]\s?["']?)${plain}{6,}`, 'gi'),
]

/**
 * Masks what looks like a secret. `field`: the name under which the text stands. In a command a value with a blank before it (`x=token: value`) may be the
 * program that is run, so there `mayCover` decides.
 */
export function maskText(text: string, field = ''): string {
  const isCommand = isCommandField(field)
  if (!isCommand && secretName.test(field) && new RegExp(`^(${plain}|[ :@,])+$`).test(text)) return '[masked]'
  const shaped = shapes.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text)
  return named.reduce((masked, pattern) => {
    let mayMask: ReturnType<typeof mayCover> | undefined
    return masked.replace(pattern, (whole: string, before: string, at: number) => {
      if (isCommand && /\s["']?$/.test(before)) {
        mayMask ??= mayCover(masked)
        if (!mayMask(at + before.length, at + whole.length)) return whole
      }
      return `${before}[masked]`
    })
  }, shaped)
}
