/** The place where a text is no CSV, and the reason. */
export interface CsvFlaw {
  /** The number of the line, from 1. */
  line: number
  message: string
}

/**
 * Returns the first place where the text is no CSV as RFC 4180 has it, null when it is one: commas, fields in quotes in which
 * quotes are doubled, and as many fields in each record as in the first. A line may end with LF alone. Reads each character once.
 */
export function findCsvFlaw(text: string): CsvFlaw | null {
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text
  let at = 0
  let line = 1
  let fields = 1
  let first: number | null = null
  while (at < source.length) {
    if (source[at] === '"') {
      const opened = line
      const end = closingQuote(source, at)
      if (end === null) return { line: opened, message: 'a quote is not closed' }
      line += lineBreaks(source, at, end)
      at = end + 1
      if (at < source.length && !isDelimiter(source, at)) return { line, message: 'text follows a closing quote' }
    } else {
      while (at < source.length && !isDelimiter(source, at)) {
        if (source[at] === '"') return { line, message: 'a quote in a field without quotes' }
        if (source[at] === '\r') return { line, message: 'a line ends with CR alone' }
        at++
      }
    }
    if (source[at] === ',') {
      fields++
      at++
      continue
    }
    first ??= fields
    if (fields !== first) return { line, message: `${fields} fields where the first record has ${first}` }
    at += source[at] === '\r' ? 2 : 1
    line++
    fields = 1
  }
  // After a last comma comes an empty field.
  return fields > 1 && first !== null && fields !== first && source.endsWith(',')
    ? { line, message: `${fields} fields where the first record has ${first}` }
    : null
}

/** The place of the quote that ends the field which the quote at `from` begins. */
function closingQuote(source: string, from: number): number | null {
  let at = from + 1
  for (;;) {
    const quote = source.indexOf('"', at)
    if (quote === -1) return null
    if (source[quote + 1] !== '"') return quote
    at = quote + 2
  }
}

function lineBreaks(source: string, from: number, to: number): number {
  let count = 0
  for (let at = source.indexOf('\n', from); at !== -1 && at < to; at = source.indexOf('\n', at + 1)) count++
  return count
}

const isDelimiter = (source: string, at: number): boolean =>
  source[at] === ',' || source[at] === '\n' || (source[at] === '\r' && source[at + 1] === '\n')
