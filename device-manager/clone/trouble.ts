/** Why a repository could not be had, for people. */
export class CloneError extends Error {
  override name = 'CloneError'
}

/** For `catch`: throws CloneError with what git said, after these words. */
export const saidBy =
  (words: string) =>
  (error: unknown): never => {
    throw new CloneError(`${words}: ${gitMessageOf(error)}`, { cause: error })
  }

/** What git said last, or what the git host said through it. */
export function gitMessageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  // Git copies what a host says: nobody else's screen is to obey it.
  const lines = text
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f]/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const remote = lines.filter((line) => line.startsWith('remote: ')).map((line) => line.slice('remote: '.length))
  const fatal = lines.filter((line) => /^(?:fatal|error): |^!/.test(line)).map((line) => line.replace(/^\w+: /, ''))
  const said = [...remote, ...fatal].join(' ') || lines.at(-1) || 'git did not say why'
  return said.length > 1_000 ? `${said.slice(0, 1_000)}…` : said
}
