// Lines broken between words. Kept apart from what knows the widths of characters, which takes time to load.

type WidthOf = (text: string) => number
const lengthOf: WidthOf = (text) => text.length

/** The lines of a text without line ends. A word that is longer than the width stays whole, so that it can be copied. */
export function brokenLine(text: string, width: number, widthOf = lengthOf): string[] {
  const lines: string[] = []
  let line = ''
  let taken = 0
  for (const word of text.split(' ')) {
    const more = widthOf(word)
    if (line === '' || taken + 1 + more <= width) {
      taken = line === '' ? more : taken + 1 + more
      line = line === '' ? word : `${line} ${word}`
    } else {
      lines.push(line)
      line = word
      taken = more
    }
  }
  return [...lines, line]
}

/** Below this nothing is readable: an indent gives way. */
const leastRoom = 20
/** What a line begins with: spaces, and the mark of an item of a list. */
const beginning = /^\s*(?:(?:[-*•→]|\d{1,3}[.)])\s+)?/

/** Breaks the lines of a text that are too long. What goes on is indented as far as the text of its line is, or `hang` columns. */
export function brokenLines(text: string, width: number, widthOf = lengthOf, hang: number | null = null): string {
  return text
    .split('\n')
    .map((line) => {
      if (line.length <= width && widthOf(line) <= width) return line
      const mark = beginning.exec(line)![0]
      const indent = hang ?? widthOf(mark)
      if (width - indent < leastRoom) return brokenLine(line, width, widthOf).join('\n')
      const [first = '', ...rest] = brokenLine(line.slice(mark.length), width - indent, widthOf)
      return [mark + first, ...rest.map((more) => ' '.repeat(indent) + more)].join('\n')
    })
    .join('\n')
}
