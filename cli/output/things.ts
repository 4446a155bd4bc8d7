import { thingKinds, type Column, type Look, type Shown, type ThingKind } from '../../shared/api/looks/look.ts'
import { chosenCase, plainWord, rawAt, valuesAt } from './cell.ts'

// The ids in what is about to be shown, of things that people call otherwise.

export type WantedThings = ReadonlyMap<ThingKind, ReadonlySet<string>>
/** Returns what people call the things, by their ids; those that it cannot find out are missing. */
export type NameThings = (wanted: WantedThings) => Promise<ReadonlyMap<string, string>>

type Found = Map<ThingKind, Set<string>>

export function thingsInRows(rows: readonly unknown[], columns: readonly Column[]): WantedThings {
  const found: Found = new Map()
  for (const row of rows) for (const [, shown] of columns) addFrom(row, shown, found)
  return found
}

export function thingsInRecord(reply: unknown, look: Look): WantedThings {
  const found: Found = new Map()
  const record = look.of === undefined ? reply : rawAt(reply, look.of)
  const facts = (look.facts ?? look.columns).map(([, shown]) => shown)
  const heads = [...(look.title === undefined ? [] : [look.title]), ...(look.under ?? [])]
  const next = (look.next ?? [])
    .flatMap(({ say, more }) => [say, ...(more === undefined ? [] : [more.say])])
    .map((text): Shown => ({ as: 'say', text }))
  for (const shown of [...heads, ...facts, ...next]) addFrom(record, shown, found)
  for (const section of look.sections ?? []) {
    if (!('rows' in section)) continue
    for (const row of valuesAt(record, section.rows))
      for (const [, shown] of section.columns) addFrom(row, shown, found)
  }
  return found
}

function addFrom(record: unknown, shown: Shown, found: Found): void {
  switch (shown.as) {
    case 'first':
      for (const one of shown.of) addFrom(record, one, found)
      return
    case 'case':
      return addFrom(record, chosenCase(record, shown), found)
    case 'choice':
      return
    case 'say':
      for (const [, kind, path] of shown.text.matchAll(/\{(\w+) ([\w.]+)\}/g))
        if (isKind(kind)) add(found, kind, valuesAt(record, path!))
        else if (kind === 'who') addByPrefix(found, valuesAt(record, path!).map(plainWord))
      return
    case 'thing':
      add(found, shown.of, valuesIn(record, shown.at))
      return
    case 'person':
      addByPrefix(found, valuesIn(record, shown.at).map(plainWord))
      return
    case 'pairs':
      for (const value of valuesIn(record, shown.at))
        if (typeof value === 'object' && value !== null) addByPrefix(found, Object.values(value).flat().map(plainWord))
      return
    default:
  }
}

const isKind = (word: string | undefined): word is ThingKind => thingKinds.some((kind) => kind === word)

const valuesIn = (record: unknown, path: string | readonly string[]): unknown[] =>
  [path].flat().flatMap((one) => valuesAt(record, one))

const kindOfPrefix: Readonly<Record<string, ThingKind>> = { agt: 'agent', prj: 'project', tsk: 'task', usr: 'person' }
const idForm = /^(agt|prj|tsk|usr)_[0-9A-Za-z]{16,22}$/

function addByPrefix(found: Found, texts: readonly string[]): void {
  for (const text of texts) {
    const [, prefix] = idForm.exec(text) ?? []
    if (prefix !== undefined) add(found, kindOfPrefix[prefix]!, [text])
  }
}

function add(found: Found, kind: ThingKind, values: readonly unknown[]): void {
  for (const value of values) {
    if (typeof value !== 'string') continue
    const ids = found.get(kind) ?? new Set()
    found.set(kind, ids.add(value))
  }
}
