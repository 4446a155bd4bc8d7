import { createHash } from 'node:crypto'
import { mutantsOf, type Mutant } from './mutants.ts'

export interface Drawn {
  file: string
  mutant: Mutant
}

/** So many mutants of these files, by chance, in the order of their places. A seed draws the same ones again. */
export function drawMutants(
  texts: ReadonlyMap<string, string>,
  { count, seed }: { count: number; seed: string },
): Drawn[] {
  const all = [...texts].flatMap(([file, text]) => mutantsOf(text).map((mutant) => ({ file, mutant })))
  const lot = ({ file, mutant }: Drawn) =>
    createHash('sha256').update([seed, file, mutant.start, mutant.end, mutant.text].join('\0')).digest('hex')
  const drawn = all.map((each) => ({ ...each, lot: lot(each) })).toSorted((a, b) => (a.lot < b.lot ? -1 : 1))
  const taken = new Set(drawn.slice(0, count).map((each) => each.lot))
  return all.filter((each) => taken.has(lot(each)))
}
