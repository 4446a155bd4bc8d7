import { expect, it } from 'vitest'
import { doubledNameProblems } from './check-doubled-names.ts'

const problemsOf = (files: Record<string, string>) => doubledNameProblems(new Map(Object.entries(files)))

it('refuses a name that two files of a part export, however they declare it', () => {
  const wrong = {
    'control-plane/a.ts': 'export const refusalOf = () => 1\n',
    'control-plane/b/c.ts': 'const x = 1\nexport async function refusalOf() {}\n',
    'cli/a.ts': 'export interface Row {}\n',
    'cli/b.ts': 'export abstract class Row {}\n',
    'shared/a.ts': 'export type Item = string\n',
    'shared/b.ts': 'export function* Item() {}\n',
  }
  expect(problemsOf(wrong)).toEqual([
    expect.stringMatching(/^shared: Item .*shared\/a\.ts and shared\/b\.ts/),
    expect.stringMatching(/^control-plane: refusalOf .*control-plane\/a\.ts and control-plane\/b\/c\.ts/),
    expect.stringMatching(/^cli: Row /),
  ])
})

it('accepts a value with its type, overloads, what is handed on, tests, other parts, and what is not exported', () => {
  const right = {
    'shared/a.ts': 'export const item = 1\nexport type item = typeof item\n',
    'shared/b.ts': "export { item } from './a.ts'\n",
    'shared/c.ts': 'function item() {}\nexport function two(): void\nexport function two(x?: 1) {}\n',
    'shared/a.test.ts': 'export const item = 1\n',
    'cli/a.ts': 'export const item = 1\n',
    'test/kit/a.ts': 'export const one = 1\n',
    'test/kit/b.ts': 'export const one = 1\n',
  }
  expect(problemsOf(right)).toEqual([])
})
