import stringWidth from 'string-width'

// Text in the columns that it takes on a terminal: wide characters take two, accents and joiners none.

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
const isAscii = (text: string) => /^[\u0020-\u007e]*$/.test(text)

/** Of a text that is wider than `most` only the beginning is measured, and the width is any number above it. */
export function widthOf(text: string, most = Infinity): number {
  if (isAscii(text)) return text.length
  if (most === Infinity) return stringWidth(text)
  let width = 0
  for (const { segment } of graphemes.segment(text)) {
    width += segment.length === 1 && segment < '\u0300' ? 1 : stringWidth(segment)
    if (width > most) break
  }
  return width
}

/** Returns the text where it fits, else its beginning with `…`. Whole characters are cut, as people see them. */
export function cut(text: string, width: number): string {
  if (widthOf(text, width) <= width) return text
  if (width < 1) return ''
  let kept = ''
  let left = width - 1
  for (const { segment } of graphemes.segment(text)) {
    left -= widthOf(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept.trimEnd()}…`
}

export const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/** Breaks a line between words, and a word that is longer than the width. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (widthOf(longer) <= width || line === '') line = longer
    else {
      lines.push(line)
      line = word
    }
  }
  return [...lines, line]
}
