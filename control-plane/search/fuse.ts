/** Damps the first places, as those who proposed the method chose it (Cormack, Clarke, Büttcher, 2009). */
const damping = 60

/** Joins lists that are ordered by numbers which do not compare: each gives 1 / (60 + place) to what it has. */
export function fuse<Item>(lists: readonly (readonly Item[])[], keyOf: (item: Item) => string): Item[] {
  const scores = new Map<string, { item: Item; score: number }>()
  for (const list of lists) {
    for (const [place, item] of list.entries()) {
      const known = scores.get(keyOf(item))
      const score = 1 / (damping + place + 1) + (known?.score ?? 0)
      scores.set(keyOf(item), { item: known?.item ?? item, score })
    }
  }
  return [...scores.values()].toSorted((a, b) => b.score - a.score).map(({ item }) => item)
}
