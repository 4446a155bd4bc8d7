/** The parts in which an exported name stands once. */
const parts = ['shared', 'control-plane', 'device-manager', 'cli']

const declaration =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm

/**
 * Finds names that more than one file of a part exports: whoever reads one of them cannot tell which is meant without its import. A
 * value and its type are one declaration where they stand in one file; what a file only hands on is none.
 */
export function doubledNameProblems(texts: ReadonlyMap<string, string>): string[] {
  return parts.flatMap((part) => {
    const homes = new Map<string, Set<string>>()
    for (const [file, text] of texts) {
      if (!file.startsWith(`${part}/`) || file.endsWith('.test.ts')) continue
      for (const [, name = ''] of text.matchAll(declaration)) homes.set(name, (homes.get(name) ?? new Set()).add(file))
    }
    return [...homes]
      .filter(([, files]) => files.size > 1)
      .map(
        ([name, files]) =>
          `${part}: ${name} is exported by ${[...files].join(' and ')}; give each a name that says which`,
      )
  })
}
