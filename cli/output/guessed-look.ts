import {
  count,
  flag,
  pairs,
  ref,
  text,
  time,
  type Column,
  type Look,
  type Section,
} from '../../shared/api/looks/look.ts'

// The look of what has none, such as the answer to `svc api`: the most telling fields of a list, all fields of one record.

const tellingKeys = [
  'id',
  'shortId',
  'publicId',
  'userId',
  'key',
  'handle',
  'name',
  'displayName',
  'title',
  'slug',
  'role',
  'email',
  'status',
]

export function guessedLook(rows: readonly unknown[]): Look {
  const records = rows.filter((row): row is Record<string, unknown> => typeof row === 'object' && row !== null)
  const keys = [...new Set(records.flatMap((record) => Object.keys(record)))]
  const telling = tellingKeys.filter((key) => keys.includes(key))
  const shownKeys = telling.length > 0 ? telling : keys.slice(0, 6)
  const sample = Object.assign({}, ...records) as Record<string, unknown>
  const facts: Column[] = []
  const sections: Section[] = []
  for (const key of keys) {
    const value = sample[key]
    if (Array.isArray(value) && value.some((item) => typeof item === 'object' && item !== null))
      sections.push({ heading: key, rows: key, columns: columnsOf(guessedLook(value)) })
    else if (typeof value === 'string' && value.includes('\n')) sections.push({ heading: key, text: key })
    else if (typeof value === 'object' && value !== null && !Array.isArray(value)) facts.push(...within(key, value))
    else facts.push([key, shownFor(key, value)])
  }
  return { columns: shownKeys.map((key) => [key.toUpperCase(), shownFor(key, sample[key])]), facts, sections }
}

/** A record that has no list of its own is shown in one by its facts. */
export const columnsOf = ({ columns, facts = [] }: Look) => (columns.length > 0 ? columns : facts)

function within(key: string, value: object): Column[] {
  return Object.entries(value).map(([inner, each]) => [`${key}.${inner}`, shownFor(`${key}.${inner}`, each)])
}

function shownFor(key: string, value: unknown) {
  if (typeof value === 'number') return count(key)
  if (typeof value === 'boolean') return flag(key, 'yes', 'no')
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return pairs(key)
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return time(key)
  return /(?:^|[a-z.])(?:id|Id|key|handle|slug)$/.test(key) ? ref(key) : text(key)
}
