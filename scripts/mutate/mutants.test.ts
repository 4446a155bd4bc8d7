import { expect, test } from 'vitest'
import { drawMutants } from './draw.ts'
import { mutantsOf } from './mutants.ts'
import { targetOf } from './targets.ts'

/** The text with each mutant of it. */
const mutated = (text: string): string[] =>
  mutantsOf(text).map(({ start, end, text: other }) => text.slice(0, start) + other + text.slice(end))

test.each<[string, string, string[]]>([
  ['a comparison', 'f(a < b)', ['f((a) <= (b))', 'f((a) >= (b))']],
  ['an equality', 'f(a === b)', ['f((a) !== (b))']],
  ['a condition', 'if (a) b = 1', ['if (!(a)) b = 1', 'if (a) ;', 'if (a) b = (1 + 1)', 'if (a) b = (1 - 1)']],
  ['a negation', 'f(!a)', ['f((a))']],
  ['a choice', 'f(a ? b : c)', ['f(!(a) ? b : c)']],
  ['clauses', 'f(a && b)', ['f(!(a) && b)', 'f((a))', 'f((a) || (b))', 'f((b))']],
  ['a value where there is none', 'f(a ?? b)', ['f((a))']],
  ['a sum', 'f(a + b)', ['f((a) - (b))']],
  ['a word', 'f(true)', ['f(false)']],
  ['some or all', 'f(a.some(b))', ['f(a.every(b))']],
  ['what a function returns', 'const f = () => a.b', ['const f = () => undefined']],
  ['whether', 'const f = () => !a', ['const f = () => (a)', 'const f = () => false', 'const f = () => true']],
  ['what is thrown', 'if (a) throw b', ['if (!(a)) throw b', 'if (a) ;']],
])('changes %s', (_what, text, expected) => {
  // As a statement a call could be dropped as well.
  const wanted = text.startsWith('f(') ? [...expected, ';'] : expected
  expect(mutated(text).toSorted()).toEqual(wanted.toSorted())
})

test('drops calls and assignments, whether they are waited for or not, and the work of a function', () => {
  const text = 'async function f() {\n  await a.b()\n  c = d\n  void e()\n}'
  const dropped = mutantsOf(text).map(({ line, what }) => `${line} ${what}`)
  expect(dropped).toEqual([
    '1 returns at once: { await a.b() c = d void e() }',
    '2 dropped: await a.b()',
    '3 dropped: c = d',
    '4 dropped: void e()',
  ])
})

test('changes nothing that only types know, and leaves files that can be read', () => {
  expect(mutantsOf("import a from 'b'\ntype A = 1 | true\ninterface B { c: 2 }\nlet d: A extends 1 ? 3 : 4")).toEqual(
    [],
  )
  expect(mutated('const a = (b as unknown as 1) > c!')).toEqual([
    'const a = (b as unknown as 1) <= (c!)',
    'const a = (b as unknown as 1) >= (c!)',
  ])
  const text =
    'export const f = (a: number) => (a > 1 ? { b: [a, 2] } : null)\n/** é 😀 */\nif (f(3)) throw new Error()'
  for (const each of mutated(text)) expect(() => mutantsOf(each)).not.toThrow()
})

test('a seed draws the same ones again, and another one others', () => {
  const texts = new Map([['a.ts', Array.from({ length: 40 }, (_, n) => `f(a > b${n})`).join('\n')]])
  const draw = (seed: string) => drawMutants(texts, { count: 20, seed })
  expect(draw('1')).toHaveLength(20)
  expect(draw('1')).toEqual(draw('1'))
  expect(draw('1')).not.toEqual(draw('2'))
  const starts = draw('1').map(({ mutant }) => mutant.start)
  expect(starts).toEqual(starts.toSorted((a, b) => a - b))
  expect(drawMutants(texts, { count: 1_000, seed: '1' })).toHaveLength(120)
})

test('rules and machines have tests to be asked, and tests are not mutated', () => {
  for (const file of ['device-manager/run/machine.ts', 'control-plane/resources/agents/trust-rules.ts'])
    expect(targetOf(file)?.near).not.toEqual([])
  expect(targetOf('device-manager/run/machine.test.ts')).toBeNull()
  expect(targetOf('control-plane/http/app.ts')).toBeNull()
})
