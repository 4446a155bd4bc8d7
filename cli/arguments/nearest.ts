/** The candidates that a mistyped word may mean, the nearest first: at most three. */
export function nearest(typed: string, candidates: readonly string[]): string[] {
  const word = typed.slice(0, 40)
  const most = Math.min(2, Math.max(1, Math.floor(word.length / 3)))
  return [...new Set(candidates)]
    .map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
    .filter(({ distance, candidate }) => distance <= most || (word.length > 2 && candidate.startsWith(word)))
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

/** How many letters are added, left out, changed or swapped with the next. */
function distanceOf(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, at) => [at])
  rows[0] = Array.from({ length: b.length + 1 }, (_, at) => at)
  const at = (i: number, j: number) => rows[i]![j]!
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(i - 2, j - 2) + 1)
      rows[i]![j] = least
    }
  return at(a.length, b.length)
}

/** `Did you mean ...?`, or '' where nothing is near. */
export function didYouMean(word: string, candidates: readonly string[], spell = (name: string) => name): string {
  const found = nearest(word, candidates).map((name) => `\`${spell(name)}\``)
  return found.length === 0 ? '' : `Did you mean ${found.join(' or ')}?`
}
