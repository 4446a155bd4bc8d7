import { slugOf } from '../../agents/rules.ts'

// Decisions about messages.

/** Agent wakes pause after this many agent messages within the window, without a person's message between them. */
export const burst = { messages: 20, windowMs: 60_000 } as const

/** `last`: authors of the newest messages, newest first. A person's message lifts the pause at once. */
export function isBursting(last: readonly { type: 'user' | 'agent'; at: number }[], now: number): boolean {
  const oldest = last[burst.messages - 1]
  if (oldest === undefined || now - oldest.at >= burst.windowMs) return false
  return last.slice(0, burst.messages).every((message) => message.type === 'agent')
}

const previewChars = 160

/** A message as one flat line, for lists. */
export function previewOfMessage(body: string): string {
  const flat = body
    .slice(0, 4 * previewChars)
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (flat.length <= previewChars && body.length <= 4 * previewChars) return flat
  // A character of two units is not cut in its middle.
  const cut = flat.slice(0, previewChars).replace(/[\ud800-\udbff]$/, '')
  return `${cut.trimEnd()}…`
}

/** Number of mentions that count in a message; further ones are ignored. */
const maxMentions = 50
const mention = /(?<![\p{N}@./+-])@([\p{L}\p{N}](?:[\p{L}\p{N}_.+-]*[\p{L}\p{N}])?(?:@[\p{L}\p{N}.-]*[\p{L}\p{N}])?)/gu

/**
 * The names after an `@` in a text, in order and once each, except in code and in addresses. In texts without blanks a change of
 * script begins or ends a mention: `请@builder看一下`, `@builderさん`.
 */
export function mentionedNames(body: string): string[] {
  const names = new Set<string>()
  const text = proseOf(body)
  const found = new RegExp(mention)
  for (let match = found.exec(text); match !== null; match = found.exec(text)) {
    const { 1: whole = '', index } = match
    const before = letterBefore(text, index)
    const script = scriptOf(whole)
    if (before !== null && (script === null || scriptOf(before) === script)) continue
    const name = inOneScript(whole, script)
    // The text behind this name may hold the next one.
    found.lastIndex = index + '@'.length + name.length
    // Behind a letter what has a dot is an address: 张三@example.com.
    if (before !== null && name.includes('.') && !name.includes('@')) continue
    names.add(name)
    if (names.size === maxMentions) break
  }
  return [...names]
}

/** Scripts that are written together with each other count as one. */
const scripts: readonly RegExp[] = [
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}ー]/u,
  ...['Latin', 'Greek', 'Cyrillic', 'Hangul', 'Arabic', 'Hebrew', 'Thai', 'Lao', 'Khmer', 'Myanmar', 'Tibetan'].map(
    (name) => new RegExp(`\\p{Script=${name}}`, 'u'),
  ),
  // Letters of all other scripts count as one script.
  /\p{L}/u,
]

/** The script of the first letter, as its place in the list; null where no letter comes first. */
function scriptOf(text: string): number | null {
  const char = String.fromCodePoint(text.codePointAt(0) ?? 0)
  const found = scripts.findIndex((script) => script.test(char))
  return found < 0 ? null : found
}

/** The beginning of the name that is in one script with its digits and marks. */
function inOneScript(whole: string, first: number | null): string {
  let script = first
  let at = 0
  for (const char of whole) {
    const own = scriptOf(char)
    if (own !== null && script !== null && own !== script) break
    script ??= own
    at += char.length
  }
  return at === whole.length ? whole : whole.slice(0, at).replace(/[_.+@-]+$/, '')
}

function letterBefore(text: string, index: number): string | null {
  const last = /\p{L}$/u.exec(text.slice(Math.max(0, index - 2), index))
  return last?.[0] ?? null
}

/** Markdown without its code: without fenced blocks, and without text between runs of backticks of the same length. */
function proseOf(body: string): string {
  if (!/[`~]/.test(body)) return body
  const lines: string[] = []
  let fence: string | null = null
  for (const line of body.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence === null && mark !== undefined) fence = mark
    else if (fence === null) lines.push(line)
    else if (mark?.startsWith(fence) === true) fence = null
  }
  return withoutInlineCode(lines.join('\n'))
}

function withoutInlineCode(text: string): string {
  const runs = [...text.matchAll(/`+/g)].map(({ index, 0: { length } }) => ({ index, length }))
  const nextOfLength = new Map<number, number>()
  const closing = runs.map((): number | null => null)
  for (let at = runs.length - 1; at >= 0; at--) {
    closing[at] = nextOfLength.get(runs[at]!.length) ?? null
    nextOfLength.set(runs[at]!.length, at)
  }
  let prose = ''
  let from = 0
  for (let at = 0; at < runs.length; at++) {
    const end = closing[at] ?? null
    if (end === null) continue
    prose += `${text.slice(from, runs[at]!.index)} `
    from = runs[end]!.index + runs[end]!.length
    at = end
  }
  return prose + text.slice(from)
}

/**
 * A person's name in a mention. People have no handle of their own, so it is made from their name, else from their
 * address.
 */
export function personHandle(person: { name: string; email: string }): string {
  return slugOf(person.name) || slugOf(person.email.split('@')[0] ?? '') || 'somebody'
}

interface Person {
  publicId: string
  name: string
  email: string
}

/**
 * Finds the only person that a mentioned name fits, by `usr_` id, address or handle; null for nobody, or for several. Handles are
 * made once: a message may mention fifty names in a workspace of thousands.
 */
export function personMatcher<T extends Person>(people: readonly T[]): (name: string) => T | null {
  const exact = new Map<string, T>()
  const byHandle = new Map<string, T | null>()
  for (const person of people) {
    for (const key of [person.publicId, person.email.toLowerCase()]) if (!exact.has(key)) exact.set(key, person)
    const handle = personHandle(person)
    byHandle.set(handle, byHandle.has(handle) ? null : person)
  }
  return (name) => {
    const lower = name.toLowerCase()
    return exact.get(name) ?? exact.get(lower) ?? byHandle.get(lower) ?? null
  }
}
