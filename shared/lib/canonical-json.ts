/**
 * Writes each JSON value as one text, whatever the order of its fields: names of fields are sorted by their UTF-16 code
 * units, there is no white space, and numbers and strings look as `JSON.stringify` writes them. Values that JSON does
 * not have become what `JSON.stringify` makes of them (`undefined` fields are left out, and elsewhere `undefined` is
 * `null`).
 *
 * Works without recursion, because an input may be nested as deep as a parser takes it.
 */
export function canonicalJson(value: unknown): string {
  const parts: string[] = []
  /** A stack of finished texts and of values that are still to be written. */
  const work: Work[] = [{ value }]
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if ('text' in next) parts.push(next.text)
    else if (Array.isArray(next.value)) addItems(work, next.value)
    else if (typeof next.value === 'object' && next.value !== null) addFields(work, next.value)
    else parts.push(JSON.stringify(next.value) ?? 'null')
  }
  return parts.join('')
}

type Work = { text: string } | { value: unknown }

function addItems(work: Work[], items: readonly unknown[]): void {
  work.push({ text: ']' })
  for (let at = items.length - 1; at >= 0; at--) {
    work.push({ value: items[at] })
    if (at > 0) work.push({ text: ',' })
  }
  work.push({ text: '[' })
}

function addFields(work: Work[], object: object): void {
  const fields = Object.entries(object).filter(([, value]) => value !== undefined)
  // The order is not that of a locale: every machine must come to the same one.
  fields.sort(([a], [b]) => (a < b ? 1 : a > b ? -1 : 0))
  work.push({ text: '}' })
  fields.forEach(([name, value], at) => {
    const isFirst = at === fields.length - 1
    work.push({ value }, { text: `${isFirst ? '' : ','}${JSON.stringify(name)}:` })
  })
  work.push({ text: '{' })
}
