import { expect, test } from 'vitest'
import { floorProblems, type Floor } from './check-floors.ts'

const floors: Floor[] = [
  { room: 'part/ground', does: 'Holds.' },
  { room: 'part/things/*/rows', does: 'Keeps.' },
  { room: 'part/things/**', does: 'Decides.' },
  { room: 'part', does: 'Begins.' },
]
const good = {
  'part/ground/stone.ts': `import { readFileSync } from 'node:fs'\nimport { other } from '../../shared/other.ts'\n`,
  'part/things/tree/rows/store.ts': `import { stone } from '../../../ground/stone.ts'\nexport { x } from './more.ts'\n`,
  'part/things/tree/rows/more.ts': '',
  'part/things/bush.ts': `import {\n  store,\n} from './tree/rows/store.ts'\n`,
  'part/main.ts': `const later = () => import('./things/bush.ts')\n`,
}
const problemsWith = (files: Record<string, string>) =>
  floorProblems(new Map(Object.entries({ ...good, ...files })), floors)

test('files that import their own room and the floors below are in order', () => {
  expect(problemsWith({})).toEqual([])
})

test('a type, a test and another part of the project may come from anywhere', () => {
  const files = {
    'part/ground/sand.ts': `import type { main } from '../main.ts'\ntype Later = typeof import('../main.ts')\n`,
    'part/ground/sand.test.ts': `import { main } from '../main.ts'\n`,
    'part/ground/clay.ts': `import { x } from '../../elsewhere/x.ts'\n`,
  }
  expect(problemsWith(files)).toEqual([])
})

test.each([
  [`import { main } from '../main.ts'\n`],
  [`export { main } from '../main.ts'\n`],
  [`import '../main.ts'\n`],
  [`const later = await import('../main.ts')\n`],
])('an import of a floor above is refused: %s', (text) => {
  expect(problemsWith({ 'part/ground/sand.ts': text })).toEqual([
    'part/ground/sand.ts: imports part/main.ts, but part is above part/ground',
  ])
})

test('the room that names a file most closely has it', () => {
  const text = `import { bush } from '../../bush.ts'\n`
  expect(problemsWith({ 'part/things/tree/rows/store.ts': text })).toEqual([
    'part/things/tree/rows/store.ts: imports part/things/bush.ts, but part/things/** is above part/things/*/rows',
    'part/things/tree/rows/store.ts -> part/things/bush.ts -> part/things/tree/rows/store.ts: a circle of imports',
  ])
})

test('a circle within a room is refused', () => {
  const files = {
    'part/ground/a.ts': `import { b } from './b.ts'\n`,
    'part/ground/b.ts': `import { c } from './c.ts'\n`,
    'part/ground/c.ts': `import { a } from './a.ts'\n`,
  }
  expect(problemsWith(files)).toEqual([
    'part/ground/a.ts -> part/ground/b.ts -> part/ground/c.ts -> part/ground/a.ts: a circle of imports',
  ])
})

test('a file that lies in no room is refused, and a room without files', () => {
  expect(problemsWith({ 'part/attic/box.ts': '' })).toEqual(['part/attic/box.ts: lies in no room'])
  expect(
    floorProblems(new Map(Object.entries(good)), [...floors, { room: 'part/attic', does: 'Stands empty.' }]),
  ).toEqual(['part/attic: a room without files'])
})

test('what is imported and is no source file lies in a room, too', () => {
  expect(problemsWith({ 'part/main.ts': `import table from './attic/table.json'\n` })).toEqual([
    'part/main.ts: imports part/attic/table.json, which lies in no room',
  ])
})
