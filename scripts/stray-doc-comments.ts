/** Lines that a doc comment cannot describe: none, an import, the end of a block, or another comment. */
const nothing = /^\s*(?:$|import\b|[}\])]|\/\/|\/\*)/
/** Instructions to the linter and the compiler, which may stand between a comment and what it describes. */
const instruction = /^\s*(?:\/\/|\/\*) ?(?:oxlint-|@ts-)/

/**
 * The line of the first doc comment that stands on nothing; -1: none. Editors show a doc comment with what comes right after it, and show
 * this one nowhere: what a file is about stands in `//` at its head.
 */
export function strayDocComment(text: string): number {
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    if (!/^\s*\/\*\*(?:\s|$)/.test(lines[at] ?? '')) continue
    const begin = at
    while (at < lines.length - 1 && !lines[at]?.includes('*/')) at++
    let next = at + 1
    while (instruction.test(lines[next] ?? '')) next++
    if (/\*\/\s*$/.test(lines[at] ?? '') && nothing.test(lines[next] ?? '')) return begin
  }
  return -1
}
