import { idFrom } from '../../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { builtinSkill, withBuiltin } from './builtin.ts'
import type { SkillRow } from '../store.ts'

const builtin = builtinSkill(idFrom('w'), { createdAt: 5, enabled: null, updatedAt: null, override: null })
const rowsAt = (...times: number[]): SkillRow[] =>
  times.map((createdAt, at) => ({ ...builtin, id: idFrom(`1${at}`), createdAt }))

/** Walks the pages of these rows as a list does. */
function walked(rows: readonly SkillRow[], { limit, oldestFirst }: { limit: number; oldestFirst: boolean }): string[] {
  const key = ({ createdAt, id }: Pick<SkillRow, 'createdAt' | 'id'>) => `${String(createdAt).padStart(3, '0')} ${id}`
  const sorted = rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
  const seen: SkillRow[] = []
  for (;;) {
    const last = seen.at(-1)
    const place = oldestFirst
      ? { after: last ?? { createdAt: -1, id: '' } }
      : last === undefined
        ? {}
        : { before: last }
    const beyond = (row: SkillRow) => last === undefined || (oldestFirst ? key(row) > key(last) : key(row) < key(last))
    const page = (oldestFirst ? sorted : sorted.toReversed()).filter(beyond).slice(0, limit + 1)
    const found = withBuiltin(page, builtin, { limit, ...place })
    seen.push(...found.slice(0, limit))
    if (found.length <= limit) return seen.map(({ createdAt, id }) => (id === builtin.id ? 'svc' : String(createdAt)))
  }
}

test('it stands once at its place, on pages of any size in both directions, also among rows of its own moment', () => {
  for (const limit of [1, 2, 3, 10])
    for (const [times, expected] of [
      [[], ['svc']],
      [
        [6, 7, 8],
        ['svc', '6', '7', '8'],
      ],
      [
        [5, 5, 5],
        ['svc', '5', '5', '5'],
      ],
      [
        [1, 2, 9],
        ['1', '2', 'svc', '9'],
      ],
      [
        [1, 4, 5, 5, 6],
        ['1', '4', 'svc', '5', '5', '6'],
      ],
      [
        [1, 2],
        ['1', '2', 'svc'],
      ],
    ] as const) {
      expect(walked(rowsAt(...times), { limit, oldestFirst: true })).toEqual(expected)
      expect(walked(rowsAt(...times), { limit, oldestFirst: false })).toEqual(expected.toReversed())
    }
})
