import { encodeCursor } from '../../shared/lib/cursor.ts'
import type { Bench } from './context.ts'
import { bornAt, serverWithRuns } from './many-runs.ts'
import { atMost, compare, type Result } from './measure.ts'
import { pageLatencies } from './page-latency.ts'
import { size } from './sizes.ts'

const few = size(1_000, 100)
const many = size(1_000_000, 1000)

/** Two servers, one with few runs and one with many, asked the same in turn. */
export const lists: Bench = {
  name: 'lists',
  about: `a page of GET /runs with ${many.toLocaleString('en')} runs, against the same with ${few.toLocaleString('en')}`,
  async run(context) {
    const small = await serverWithRuns(context, { name: 'lists-few', count: few })
    const large = await serverWithRuns(context, { name: 'lists-many', count: many })
    try {
      const results: Result[] = []
      for (const [name, path, limit] of [
        ['first page', () => '/runs?limit=50', 1.1],
        ['page in the middle', middle, 2],
        ['first page of failed runs', () => '/runs?limit=50&status=failed', 1.1],
      ] as const) {
        results.push(
          await compare({
            goal: 13,
            name: `GET /runs, ${name}, 1,000,000 to 1,000 runs`,
            unit: 'ms',
            peerIs: '1,000 runs',
            target: atMost(limit),
            rounds: context.rounds,
            ours: () => pageLatencies(large, () => path(many), 200),
            peer: () => pageLatencies(small, () => path(few), 200),
          }),
        )
      }
      return results
    } finally {
      await small.end()
      await large.end()
    }
  },
}

/** A page that begins at a run anywhere in the list. */
function middle(count: number): string {
  const at = 100 + Math.floor(Math.random() * (count - 200))
  return `/runs?limit=50&cursor=${encodeCursor([bornAt + at * 1000, 'run_zzzzzzzzzzzzzzzz'])}`
}
