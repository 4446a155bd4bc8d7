/**
 * One text for each JSON value, whatever the order in which its fields were written: names of fields sorted by their
 * UTF-16 code units, no white space, numbers and strings as `JSON.stringify` writes them. What JSON cannot say is what
 * `JSON.stringify` makes of it (fields that are `undefined` are left out, elsewhere it is `null`).
 *
 * Written without recursion: an input may be nested as deep as a parser takes it.
 */
export function canonicalJson(value: unknown): string {
  const parts: string[] = []
  /** What is still to be written, the next one last: finished text, or a value. */
  const work: ({ text: string } | { value: unknown })[] = [{ value }]
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if ('text' in next) parts.push(next.text)
    else if (Array.isArray(next.value)) addItems(work, next.value)
    else if (typeof next.value === 'object' && next.value !== null) addFields(work, next.value)
    else parts.push(JSON.stringify(next.value) ?? 'null')
  }
  return parts.join('')
}

type Work = ({ text: string } | { value: unknown })[]

function addItems(work: Work, items: readonly unknown[]): void {
  work.push({ text: ']' })
  for (let at = items.length - 1; at >= 0; at--) {
    work.push({ value: items[at] })
    if (at > 0) work.push({ text: ',' })
  }
  work.push({ text: '[' })
}

function addFields(work: Work, object: object): void {
  const fields = Object.entries(object).filter(([, value]) => value !== undefined)
  // Not by locale: every machine must come to the same order.
  fields.sort(([a], [b]) => (a < b ? 1 : a > b ? -1 : 0))
  work.push({ text: '}' })
  fields.forEach(([name, value], at) => {
    const isFirst = at === fields.length - 1
    work.push({ value }, { text: `${isFirst ? '' : ','}${JSON.stringify(name)}:` })
  })
  work.push({ text: '{' })
}
