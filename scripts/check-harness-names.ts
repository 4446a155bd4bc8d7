/** The only places that may compare, list or choose a harness by its name: its row, and its folder on the device. */
const home = /^shared\/runs\/harnesses\.ts$|^device-manager\/harness\//

/**
 * Finds the places of a file where a harness's name decides something: a comparison or choice of a harness, or a name
 * that means nothing but a harness. They should ask `harnesses.ts` instead.
 */
export function harnessNameProblems(file: string, text: string, names: readonly string[]): string[] {
  if (home.test(file) || file.endsWith('.test.ts')) return []
  const any = names.join('|')
  // `command` and `cursor` are also words of other things.
  const own = names.filter((name) => name !== 'command' && name !== 'cursor').join('|')
  const decides = new RegExp(
    `\\bharness\\w*\\b[^\\n'"]{0,40}(?:[!=]==?|:|\\?\\?)\\s*'(?:${any})'|case '(?:${own})'|[!=]==?\\s*'(?:${own})'|\\['(?:${own})'[,\\]]`,
    'gi',
  )
  return [...text.matchAll(decides)].map(([found]) => {
    return `${file}: \`${found.trim()}\` decides by the name of a harness; ask \`harnesses\` of shared/runs/harnesses.ts`
  })
}
