import stringWidth from 'string-width'
import { brokenLine, brokenLines } from './broken-lines.ts'

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

/** Breaks a line between words. */
export const wrap = (text: string, width: number): string[] => brokenLine(text, width, widthOf)

/** Breaks the lines of a text that are too long; each goes on below its own beginning. */
export const wrapLines = (text: string, width: number): string => brokenLines(text, width, widthOf)
