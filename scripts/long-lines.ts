const mostChars = 140

/**
 * The first line of a page that nobody reads without scrolling; -1: there is none. The row of a table cannot be broken, so each of its
 * cells counts by itself: one that is a paragraph belongs below the table.
 */
export const longLine = (text: string): number => text.split('\n').findIndex((line) => longestPart(line) > mostChars)

function longestPart(line: string): number {
  if (!line.trimStart().startsWith('|')) return line.length
  const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
  return Math.max(...cells.filter((cell) => !/^:?-+:?$/.test(cell)).map((cell) => cell.length))
}
