import type { Floor, ImportGraph } from './check-floors.ts'

/** By resource: the resources after it that it knows all the same, each with the reason. */
export type KnownAhead = Readonly<Record<string, Readonly<Record<string, string>>>>

const folder = /^control-plane\/resources\/([\w-]+)\//

/**
 * Returns what is wrong with what the resources of the control plane know of each other.
 *
 * - A resource knows those before it, in the order in which the floors name them first. One after it is known for a reason of
 *   `ahead` alone; a reason that nothing needs any more is refused.
 * - The place of a file tells who may use it: `own/` its resource alone, `handlers/` the list of routes, all else other resources
 *   and rooms too. What nobody else uses stands in `own/`.
 */
export function resourceProblems(graph: ImportGraph, floors: readonly Floor[], ahead: KnownAhead): string[] {
  const order = resourceOrder(floors)
  const problems: string[] = []
  const usedElsewhere = new Set<string>()
  const needed = new Set<string>()
  for (const [file, imports] of graph) {
    const from = resourceOf(file)
    for (const { target } of imports) {
      const to = resourceOf(target)
      if (to === null || to === from) continue
      usedElsewhere.add(target)
      if (target.includes('/own/')) problems.push(`${file}: imports ${target}, which is ${to}'s own`)
      if (from === null) continue
      if (target.includes('/handlers/'))
        problems.push(`${file}: imports ${target}: handlers are for the list of routes`)
      if (order.indexOf(to) < order.indexOf(from)) continue
      needed.add(`${from} ${to}`)
      if (ahead[from]?.[to] === undefined)
        problems.push(
          `${file}: imports ${target}: ${from} stands before ${to}; register an effect, or give the reason in scripts/known-ahead.ts`,
        )
    }
  }
  for (const file of graph.keys()) {
    const isPlaced = /\/(?:own|handlers)\//.test(file)
    if (resourceOf(file) !== null && !isPlaced && !usedElsewhere.has(file))
      problems.push(`${file}: nobody but its resource uses it; it stands in own/`)
  }
  for (const [from, to] of pairsOf(ahead))
    if (!needed.has(`${from} ${to}`)) problems.push(`scripts/known-ahead.ts: ${from} does not know ${to} any more`)
  return problems
}

/** Returns the lines of `ahead` that a page lacks: `| agents | runs | reason |`, with any padding. */
export function missingReasons(page: string, ahead: KnownAhead): string[] {
  const lines = new Set(page.split('\n').map((line) => line.replaceAll(/\s+/g, ' ').trim()))
  return pairsOf(ahead)
    .map(([from, to]) => `| ${from} | ${to} | ${ahead[from]![to]!} |`)
    .filter((line) => !lines.has(line))
}

function resourceOrder(floors: readonly Floor[]): string[] {
  const names = floors.flatMap(({ rooms }) => Object.keys(rooms)).map((room) => resourceOf(`control-plane/${room}/`))
  return [...new Set(names)].filter((name) => name !== null)
}

const resourceOf = (file: string): string | null => folder.exec(file)?.[1] ?? null

const pairsOf = (ahead: KnownAhead): [string, string][] =>
  Object.entries(ahead).flatMap(([from, known]) => Object.keys(known).map((to): [string, string] => [from, to]))
