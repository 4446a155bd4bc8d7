import { describe, expect, it } from 'vitest'
import { checkFloors, checkUpwardTypes, importsOf, type Floor } from './check-floors.ts'

const floors: readonly Floor[] = [
  { floor: 'rows', rooms: { 'resources/runs': 'runs', 'resources/tasks': 'tasks' } },
  { floor: 'handlers', rooms: { 'resources/runs/handlers': 'runs', 'resources/tasks/handlers': 'tasks' } },
  { floor: 'edges', rooms: { 'main.ts': 'the program' } },
]

/** Returns what is wrong with these files of the part `house`. */
function problemsOf(files: Record<string, string>, check = checkFloors): string[] {
  const texts = Object.entries(files).map(([path, text]) => [`house/${path}`, text] as const)
  return check('house', floors, new Map(texts.map(([path, text]) => [path, importsOf(path, text)])))
}

const sound = {
  'main.ts': `import { runs } from './resources/runs/handlers/runs.ts'`,
  'resources/runs/handlers/runs.ts': `import { findRun } from '../store.ts'\nimport { findTask } from '../../tasks/store.ts'`,
  'resources/tasks/store.ts': `import { findRun, type Run } from '../runs/store.ts'`,
  'resources/tasks/handlers/tasks.ts': `import { findTask } from '../store.ts'`,
  'resources/runs/store.ts': `import { z } from 'zod'`,
}

describe('the floors of a part', () => {
  it('accepts a house whose imports point down', () => {
    expect(problemsOf(sound)).toEqual([])
  })

  it.each([
    [
      'a file that stands in no room',
      { 'attic/box.ts': '' },
      'house/attic/box.ts: stands in no room; give it one in the floors of house',
    ],
    [
      'rows that import a handler',
      { 'resources/runs/rules.ts': `import { runs } from './handlers/runs.ts'` },
      'house/resources/runs/rules.ts: imports house/resources/runs/handlers/runs.ts: resources/runs/handlers stands above resources/runs',
    ],
    [
      'a room that imports one above it on the same floor',
      { 'resources/runs/rules.ts': `export { findTask } from '../tasks/store.ts'` },
      'house/resources/runs/rules.ts: imports house/resources/tasks/store.ts: resources/tasks stands above resources/runs',
    ],
    [
      'an import when it is needed',
      { 'resources/runs/rules.ts': `const late = () => import('../../main.ts')` },
      'house/resources/runs/rules.ts: imports house/main.ts: main.ts stands above resources/runs',
    ],
    [
      'a handler that writes to another resource by its store',
      { 'resources/tasks/handlers/tasks.ts': `import { findRun, endRun } from '../../runs/store.ts'` },
      'house/resources/tasks/handlers/tasks.ts: imports endRun of house/resources/runs/store.ts: handlers write to others by their steps',
    ],
    [
      'a handler that takes a store of another resource as a whole',
      { 'resources/tasks/handlers/tasks.ts': `import * as runs from '../../runs/lease-store.ts'` },
      'house/resources/tasks/handlers/tasks.ts: imports all of house/resources/runs/lease-store.ts: handlers write to others by their steps',
    ],
  ])('refuses %s', (_, wrong, problem) => {
    expect(problemsOf({ ...sound, ...wrong })).toEqual([problem])
  })

  it('refuses a room without files', () => {
    const { 'main.ts': _, ...others } = sound
    expect(problemsOf(others)).toEqual(['house/main.ts: a room without files'])
  })

  it('refuses a circle of values within a room', () => {
    const circle = {
      'resources/runs/a.ts': `import { b } from './b.ts'`,
      'resources/runs/b.ts': `import { a } from './a.ts'`,
    }
    expect(problemsOf({ ...sound, ...circle })).toContain(
      'house/resources/runs/a.ts -> house/resources/runs/b.ts -> house/resources/runs/a.ts: a circle of values',
    )
  })

  it('refuses a circle of types within a floor, and takes a type from above', () => {
    const circle = {
      'resources/runs/a.ts': `import type { Task } from '../tasks/b.ts'`,
      'resources/tasks/b.ts': `import { type Run } from '../runs/a.ts'`,
    }
    expect(problemsOf({ ...sound, ...circle })).toEqual([
      'house/resources/runs/a.ts -> house/resources/tasks/b.ts -> house/resources/runs/a.ts: a circle of types within a floor',
    ])
    expect(problemsOf({ ...sound, 'resources/runs/a.ts': `import type { Main } from '../../main.ts'` })).toEqual([])
  })

  it.each([
    `import type { Main } from '../../main.ts'`,
    `import { type Main } from '../../main.ts'`,
    `export type { Main } from '../../main.ts'`,
    `type Main = typeof import('../../main.ts')`,
  ])('refuses a type from above in a part in which none may be: %s', (text) => {
    expect(problemsOf({ ...sound, 'resources/runs/a.ts': text }, checkUpwardTypes)).toEqual([
      'house/resources/runs/a.ts: imports a type of house/main.ts: main.ts stands above resources/runs',
    ])
    expect(problemsOf(sound, checkUpwardTypes)).toEqual([])
  })

  it('a handler may import types and readers of another store, and anything of its own', () => {
    const handler = `import type { Writer } from '../../runs/store.ts'\nimport { listRuns, type RunRow } from '../../runs/store.ts'\nimport { endTask } from '../store.ts'`
    expect(problemsOf({ ...sound, 'resources/tasks/handlers/tasks.ts': handler })).toEqual([])
  })
})
