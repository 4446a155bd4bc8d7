/** The words of an example of help, as a shell reads them. */
export function exampleWords(example: string): string[] {
  const words = [...example.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''),
  )
  const end = words.findIndex((word) => word === '|' || word === '<' || word === '>')
  return words.slice(1, end === -1 ? undefined : end)
}
