/** The parts in which an exported name stands once. */
const parts = ['shared', 'control-plane', 'device-manager', 'cli']

/** Names that adapters of harnesses have each for itself; they are to be told apart, too. */
const known: ReadonlySet<string> = new Set([
  'device-manager: Answered',
  'device-manager: Approvals',
  'device-manager: ShownCall',
  'device-manager: ids',
  'device-manager: tooLate',
  'device-manager: OutcomeFacts',
  'device-manager: factsBefore',
  'device-manager: classOf',
  'device-manager: reply',
  'device-manager: Usage',
  'device-manager: request',
  'device-manager: RequestId',
  'device-manager: signInHint',
  'device-manager: signInWith',
  'device-manager: UsageMeter',
  'device-manager: initLine',
  'device-manager: assistantLine',
  'device-manager: resultLine',
  'device-manager: ResultLine',
  'device-manager: resultOf',
])

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
      .filter(([name, files]) => files.size > 1 && !known.has(`${part}: ${name}`))
      .map(
        ([name, files]) =>
          `${part}: ${name} is exported by ${[...files].join(' and ')}; give each a name that says which`,
      )
  })
}
