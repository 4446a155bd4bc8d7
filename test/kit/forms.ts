/**
 * Two forms of the tests. The short one, which `./scripts/test` and CI run, tries each behaviour once: what is repeated at
 * random moments is repeated a few times, and what holds alike for several programs or databases is shown with one of
 * them. `TESTS=long` runs all of it. A test that stands in the long form alone has a brother in the short one that would
 * show the same fault, or recordings of the real program that do.
 */
export const isLong = formOf(process.env['TESTS'])

/** How often a test repeats what it draws: as its own variable says, else as the form does. */
export function repeats(variable: string, { short, long }: { short: number; long: number }): number {
  return Number(process.env[variable] ?? (isLong ? long : short))
}

function formOf(named = 'short'): boolean {
  if (named === 'short' || named === 'long') return named === 'long'
  throw new Error(`TESTS is "short" or "long", not "${named}".`)
}
