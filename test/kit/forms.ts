/**
 * Two forms of the tests. The short one, which `./scripts/test` and CI run, tries each behaviour once: what is repeated at
 * random moments is repeated a few times, and what holds alike for several programs or databases is shown with one of
 * them. `TESTS=long` runs all of it. What only the long form tries is shown in the short one by another test, or by recordings
 * of the real program.
 */
export const isLong = formOf(process.env['TESTS'])

/** How often a test repeats what it draws: as its own variable says, else as the form does. */
export function repeats(variable: string, { short, long }: { short: number; long: number }): number {
  const count = Number(process.env[variable] ?? (isLong ? long : short))
  // A test that repeats nothing would pass.
  if (!Number.isInteger(count) || count < 1) throw new Error(`${variable} is a whole number from 1.`)
  return count
}

/** Says whether a test of the long form runs that draws: in that form, and wherever its variable says how often it draws. */
export function isDrawn(variable: string): boolean {
  return isLong || process.env[variable] !== undefined
}

/** The databases of a file of tests that are about what happens, and not about how it is stored: one in the short form. */
export const databasesFor = (short: 'sqlite' | 'postgres'): readonly ('sqlite' | 'postgres')[] =>
  isLong ? ['sqlite', 'postgres'] : [short]

function formOf(named = 'short'): boolean {
  if (named === 'short' || named === 'long') return named === 'long'
  throw new Error(`TESTS is "short" or "long", not "${named}".`)
}
