/** The word somebody most likely meant, or null when none is near. At most a third of the letters may differ. */
export function nearest(word: string, known: readonly string[]): string | null {
  const asked = word.toLowerCase()
  let best: { word: string; distance: number } | null = null
  for (const candidate of known) {
    const distance = distanceOf(asked, candidate.toLowerCase())
    const isNear = distance <= Math.max(1, Math.floor(Math.max(asked.length, candidate.length) / 3))
    if (isNear && (best === null || distance < best.distance)) best = { word: candidate, distance }
  }
  return best?.word ?? null
}

/** Counts letters added, left out, changed, or swapped with the next one (optimal string alignment). */
function distanceOf(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let at = 1; at <= b.length; at++) {
      const change = a[row - 1] === b[at - 1] ? 0 : 1
      let least = Math.min(last[at]! + 1, next[at - 1]! + 1, last[at - 1]! + change)
      const isSwap = row > 1 && at > 1 && a[row - 1] === b[at - 2] && a[row - 2] === b[at - 1]
      if (isSwap) least = Math.min(least, before[at - 2]! + 1)
      next.push(least)
    }
    before = last
    last = next
  }
  return last[b.length]!
}
