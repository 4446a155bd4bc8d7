import { describe, expect, it } from 'vitest'
import { checkProgram } from './check.ts'

const meta = "export const meta = { name: 'x', title: 'X' };"
const flawIn = (source: string) => {
  const checked = checkProgram(source)
  return 'flaw' in checked ? checked.flaw : null
}
const flawAt = (source: string) => {
  const flaw = flawIn(source)
  return flaw && [flaw.code, flaw.line, flaw.column]
}

describe('a program', () => {
  it('is described by its meta, with defaults', () => {
    const source = `${meta}\nconst text = await agent('Say hello')\nreturn text`
    expect(checkProgram(source)).toEqual({
      meta: { name: 'x', title: 'X', description: null, inputs: [], toolPermissionMode: 'ask' },
      nameAt: { line: 1, column: 29 },
    })
  })

  it('declares its inputs, each with a label, a kind and whether it is required', () => {
    const inputs = "[{ key: 'task', kind: 'task', required: true, label: 'The task' }, { key: 'n' }]"
    const checked = checkProgram(
      `export const meta = { name: 'x', title: \`T\`, inputs: ${inputs}, toolPermissionMode: 'full' }`,
    )
    expect(checked).toMatchObject({
      meta: {
        title: 'T',
        toolPermissionMode: 'full',
        inputs: [
          { key: 'task', label: 'The task', kind: 'task', required: true },
          { key: 'n', label: 'n', kind: 'text', required: false },
        ],
      },
    })
  })

  it.each([
    ['const a = ;', 'workflow_syntax', 1, 11],
    [`${meta}\nconst a = {`, 'workflow_syntax', 2, 12],
    [`${meta}\nexport const other = 1`, 'workflow_syntax', 2, 1],
    [`import a from 'a'\n${meta}`, 'workflow_import', 1, 1],
    [`${meta}\nawait import('fs')`, 'workflow_import', 2, 7],
    [`${meta}\nreturn import.meta.url`, 'workflow_import', 2, 8],
    [`${meta}\nexport * from 'a'`, 'workflow_import', 2, 1],
    ['', 'workflow_meta_missing', null, null],
    ['return 1', 'workflow_meta_missing', 1, 1],
    [`const a = 1\n${meta}`, 'workflow_meta_missing', 1, 1],
    ["export let meta = { name: 'x', title: 'X' }", 'workflow_meta_missing', 1, 1],
    ["export const meta = { name: 'x', title: 'X' + 'Y' }", 'workflow_meta_not_literal', 1, 41],
    ["const n = 1; export const meta = { name: 'x' }", 'workflow_meta_missing', 1, 1],
    ["export const meta = { name: 'x', title: `a${1}` }", 'workflow_meta_not_literal', 1, 41],
    ["export const meta = { name: 'x', ...{ title: 'X' } }", 'workflow_meta_not_literal', 1, 34],
    ["export const meta = { ['name']: 'x' }", 'workflow_meta_not_literal', 1, 23],
    ["export const meta = { __proto__: { name: 'x' } }", 'workflow_meta_not_literal', 1, 23],
    ['export const meta = make()', 'workflow_meta_not_literal', 1, 21],
    ["export const meta = { name: 'X', title: 'X' }", 'workflow_meta_invalid', 1, 29],
    ["export const meta = { name: 'x' }", 'workflow_meta_invalid', 1, 21],
    ["export const meta = { name: 'x', title: 'X', more: 1 }", 'workflow_meta_invalid', 1, 21],
    [`export const meta = { name: '${'x'.repeat(129)}', title: 'X' }`, 'workflow_meta_invalid', 1, 29],
  ])('is refused: %s', (source, ...flaw) => {
    expect(flawAt(source)).toEqual(flaw)
  })

  it('has at most 32 inputs, each under its own key', () => {
    const inputs = (keys: string[]) => `[${keys.map((key) => `{ key: '${key}' }`).join(', ')}]`
    const withInputs = (keys: string[]) =>
      flawIn(`export const meta = { name: 'x', title: 'X', inputs: ${inputs(keys)} }`)
    const keys = Array.from({ length: 33 }, (_, at) => `k${at}`)
    expect(withInputs(keys.slice(0, 32))).toBeNull()
    expect(withInputs(keys)).toMatchObject({ code: 'workflow_meta_invalid', message: expect.stringContaining('32') })
    expect(withInputs(['a', 'a'])).toMatchObject({ code: 'workflow_meta_invalid' })
  })
})

describe('names that a program is not given', () => {
  it.each([
    ['await fetch("x")', 2, 7],
    ['setTimeout(() => 1)', 2, 1],
    ['const f = () => { return { process } }', 2, 28],
    ['typeof require', 2, 8],
    ['globalThis.x = 1', 2, 1],
    ['process = 1', 2, 1],
    ['[module] = [1]', 2, 2],
    ['{ const fetch = 1 } fetch()', 2, 21],
    ['(function () { var fetch }); fetch()', 2, 30],
    ['function f(a = crypto) {}', 2, 16],
    ['class A extends Function {}', 2, 17],
  ])('are refused as free variables: %s', (body, line, column) => {
    expect(flawAt(`${meta}\n${body}`)).toEqual(['workflow_banned_global', line, column])
  })

  it.each([
    'const fetch = 1; return fetch',
    'input.process.module',
    'const f = (require) => require',
    'function f({ process, a: [eval1, ...crypto] }) { return [process, crypto] }',
    'for (const window of []) window',
    'for (let self = 0; self < 1; self++) self',
    'try { 1 } catch (module) { module }',
    'if (1) { var performance = 1 } return performance',
    'switch (1) { case 1: let global = 1; global }',
    'return { fetch: 1, eval() {} }',
    'process: for (;;) break process',
    'const C = class crypto { m() { return crypto } }',
  ])('may be declared, or stand for something else: %s', (body) => {
    expect(flawAt(`${meta}\n${body}`)).toBeNull()
  })
})

describe('programs that want to break the parser', () => {
  it.each([
    ['parentheses', '('.repeat(90_000)],
    ['closed parentheses', `${'('.repeat(90_000)}1${')'.repeat(90_000)}`],
    ['lists', '['.repeat(100_000)],
    ['a pattern', `/${'('.repeat(90_000)}${')'.repeat(90_000)}/`],
    ['functions', '(()=>{'.repeat(25_000)],
  ])('are refused: %s', (_, body) => {
    expect(flawIn(`${meta}\n${body}`)).toMatchObject({ code: 'workflow_syntax' })
  })
})
