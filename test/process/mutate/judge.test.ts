import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { Copy } from '../../../scripts/mutate/judge.ts'
import { mutantsOf } from '../../../scripts/mutate/mutants.ts'

// Mutants of a small project with a weak and a strong test, judged as those of this one are.

const root = join(import.meta.dirname, '..', '..', '..')
const rule = `export const mayEnter = (age: number): boolean => age >= 18
export function countTo(most: number): number {
  let count = 0
  while (count < most) count++
  return count
}
`
const files = {
  'package.json': '{ "type": "module" }',
  'vitest.config.ts': `export default { test: { projects: [{ test: { name: 'fast', include: ['*.test.ts'] } }] } }`,
  'rule.ts': rule,
  'other.ts': 'export const one = () => 1',
  'weak.test.ts': `import { expect, test } from 'vitest'
import { countTo, mayEnter } from './rule.ts'
test('somebody enters', () => void expect(mayEnter(40) && countTo(1) > 0).toBe(true))`,
  'strong.test.ts': `import { expect, test } from 'vitest'
import { countTo, mayEnter } from './rule.ts'
test('those of age enter', () => void expect([17, 18, 19].map(mayEnter)).toEqual([false, true, true]))
test('it counts', () => void expect([countTo(0), countTo(3)]).toEqual([0, 3]))`,
  'wrong.test.ts': `import { expect, test } from 'vitest'
test('this never holds', () => void expect(1).toBe(2))`,
}

let project: string
let copy: Copy
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'svc-mutated-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'))
  copy = new Copy(project, 500)
})
afterAll(() => {
  copy.remove()
  rmSync(project, { recursive: true })
})

const mutants = mutantsOf(rule)
const ofLine = (line: number) => mutants.filter((mutant) => mutant.line === line)
async function judged(tests: string): Promise<string[]> {
  const found: string[] = []
  for (const mutant of ofLine(1)) found.push(`${await copy.judge('rule.ts', mutant, [tests])}: ${mutant.what}`)
  return found
}

// In the short form one of each is judged where two files are changed, below.
if (isLong)
  test('what no test notices lives, and what one notices does not', async () => {
    expect(await judged('weak.test.ts')).toEqual([
      'killed: age >= 18 => (age) < (18)',
      'lived: age >= 18 => (age) > (18)',
      'killed: age >= 18 => false',
      'lived: age >= 18 => true',
      'lived: 18 => (18 + 1)',
      'lived: 18 => (18 - 1)',
    ])
    for (const verdict of await judged('strong.test.ts')) expect(verdict).toMatch(/^killed: /)
  })

test('a mutant that never ends is ended, and those after it are judged', async () => {
  const endless = ofLine(4).find(({ what }) => what.startsWith('dropped: count++'))!
  expect(await copy.judge('rule.ts', endless, ['strong.test.ts'])).toBe('timed out')
  expect(await copy.judge('rule.ts', ofLine(1)[0]!, ['strong.test.ts'])).toBe('killed')
  await copy.checkTests()
})

test('a file that was changed is as it was when another one is', async () => {
  expect(await copy.judge('rule.ts', ofLine(1)[0]!, ['strong.test.ts'])).toBe('killed')
  const [other] = mutantsOf(files['other.ts'])
  expect(await copy.judge('other.ts', other!, ['strong.test.ts'])).toBe('lived')
})

test('neither the project nor its copy stays changed, and tests that fail anyway judge nothing', async () => {
  await expect(copy.judge('rule.ts', ofLine(1)[0]!, ['wrong.test.ts'])).rejects.toThrow('Without any mutant')
  for (const folder of [project, copy.root]) expect(readFileSync(join(folder, 'rule.ts'), 'utf8')).toBe(rule)
})
