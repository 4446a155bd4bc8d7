import { fieldAt, textAt } from '../replies/fields.ts'
import type { NameThings } from './things.ts'

/** What a result is, for the table that people see. Without a look the most telling fields are shown. */
export interface Shape {
  look?: string | undefined
  /** The key of the list in it; without one the usual keys are tried. */
  list?: string | undefined
  /** The flag that reads the next page. */
  nextFlag?: string | undefined
  /** `--all` reads all pages. */
  hasAll?: boolean
  /** Finds out what people call the things in it; without one they are shown by their ids. */
  nameThings?: NameThings
}

const listKeys = ['data', 'devices', 'sources', 'runs', 'results']

/** The rows of the list that the value is, with null for ids that are unknown; null when it is none. */
export function rowsIn(value: unknown, { list, look }: Shape = {}): readonly unknown[] | null {
  if (Array.isArray(value)) return value
  // A record may have lists of its own, which are no pages.
  const isRecord = list === undefined && look !== undefined && textAt(value, 'object') !== 'list'
  for (const key of isRecord ? [] : list === undefined ? listKeys : [list, 'data']) {
    const found = fieldAt(value, key)
    if (Array.isArray(found)) return found
  }
  return null
}
