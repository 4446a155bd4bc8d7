import { expect, test } from 'vitest'
import type { Floor, Import } from './check-floors.ts'
import { missingReasons, resourceProblems } from './check-resources.ts'

const floors: Floor[] = [
  { floor: 'rows', rooms: { trust: 't', 'resources/a': 'a', 'resources/b': 'b' } },
  { floor: 'steps', rooms: { 'resources/a/steps': 'a', 'resources/c/steps': 'c' } },
  { floor: 'handlers', rooms: { 'resources/b/handlers': 'b' } },
]
const at = (path: string) => `control-plane/${path}`
/** By file: what it imports. */
const graphOf = (files: Record<string, string[]>) =>
  new Map(
    Object.entries(files).map(([file, targets]): [string, Import[]] => [
      at(file),
      targets.map((target) => ({ target: at(target), typeOnly: false, names: ['x'] })),
    ]),
  )
const problemsOf = (files: Record<string, string[]>, ahead = {}) => resourceProblems(graphOf(files), floors, ahead)
const routes = { 'routes.ts': ['resources/a/store.ts', 'resources/b/store.ts', 'resources/b/handlers/b.ts'] }
const rows = { 'resources/a/store.ts': [], 'resources/b/store.ts': [] }

test('a resource knows those before it, by their place in any room', () => {
  expect(problemsOf({ ...routes, ...rows, 'resources/b/handlers/b.ts': ['resources/a/store.ts'] })).toEqual([])
  const ahead = {
    ...routes,
    ...rows,
    'resources/a/steps/s.ts': ['resources/b/store.ts'],
    'link/x.ts': ['resources/a/steps/s.ts'],
  }
  expect(problemsOf(ahead)).toMatchObject([expect.stringContaining('a stands before b')])
  expect(problemsOf(ahead, { a: { b: 'why' } })).toEqual([])
  // One that has steps alone stands after those that have rows.
  const last = {
    ...routes,
    'resources/b/store.ts': ['resources/c/steps/s.ts'],
    'resources/a/store.ts': [],
    'resources/c/steps/s.ts': [],
  }
  expect(problemsOf(last)).toMatchObject([expect.stringContaining('b stands before c')])
})

test('a reason that nothing needs is refused, and so is a page without it', () => {
  expect(problemsOf({ ...routes, ...rows }, { a: { b: 'why' } })).toMatchObject([expect.stringContaining('any more')])
  expect(missingReasons('| a     | b | why |\n', { a: { b: 'why' } })).toEqual([])
  expect(missingReasons('| a | b | because |\n', { a: { b: 'why' } })).toEqual(['| a | b | why |'])
})

test('the place of a file tells who may use it', () => {
  const own = { ...routes, ...rows, 'resources/a/own/o.ts': [], 'resources/b/handlers/b.ts': ['resources/a/own/o.ts'] }
  expect(problemsOf(own)).toMatchObject([expect.stringContaining("is a's own")])
  expect(problemsOf({ ...own, 'resources/b/handlers/b.ts': [], 'link/x.ts': ['resources/a/own/o.ts'] })).toHaveLength(1)
  expect(
    problemsOf({ ...own, 'resources/b/handlers/b.ts': [], 'resources/a/store.ts': ['resources/a/own/o.ts'] }),
  ).toEqual([])
  const handler = {
    ...routes,
    ...rows,
    'resources/b/handlers/b.ts': [],
    'resources/c/steps/s.ts': ['resources/b/handlers/b.ts'],
  }
  expect(problemsOf({ ...handler, 'link/x.ts': ['resources/c/steps/s.ts'] })).toMatchObject([
    expect.stringContaining('handlers are for the list of routes'),
  ])
  expect(problemsOf({ ...routes, ...rows, 'resources/a/rules.ts': [] })).toMatchObject([
    expect.stringContaining('stands in own/'),
  ])
})
