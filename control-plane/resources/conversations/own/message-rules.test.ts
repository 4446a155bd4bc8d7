import { expect, test } from 'vitest'
import { isBursting, mentionedNames, personHandle, personMatcher, previewOfMessage } from './message-rules.ts'
import { cpuMsOf } from '../../../../test/kit/cpu-time.ts'

test('twenty agent messages within a minute pause wakes until the window has less, or a person posts', () => {
  const agents = (count: number) => Array.from({ length: count }, (_, n) => ({ type: 'agent' as const, at: 1_000 - n }))
  expect(isBursting(agents(19), 1_000)).toBe(false)
  expect(isBursting(agents(20), 1_000)).toBe(true)
  expect(isBursting(agents(20), 981 + 59_999)).toBe(true)
  expect(isBursting(agents(20), 981 + 60_000)).toBe(false)
  expect(isBursting([{ type: 'user', at: 1_000 }, ...agents(19)], 1_000)).toBe(false)
  expect(isBursting([...agents(20), { type: 'user', at: 0 }], 1_000)).toBe(true)
})

test.each([
  ['', []],
  ['@builder fix it', ['builder']],
  ['Ask @builder-2, @Ada.Smith and (@usr_7aZ1qX5vNmG9kT3r).', ['builder-2', 'Ada.Smith', 'usr_7aZ1qX5vNmG9kT3r']],
  ['@a @b @a', ['a', 'b']],
  ['@builder: go! @builder?', ['builder']],
  ['Write to me@example.com or a@b', []],
  ['@me@example.com is an address', ['me@example.com']],
  ['see https://x.org/@someone and npm i @scope/package', ['scope']],
  ['**@bold** _@under_ "@quoted" @größe', ['bold', 'under', 'quoted', 'größe']],
  ['`@code` and ``@more `code` `` but @real', ['real']],
  ['```\n@fenced\n```\n@real', ['real']],
  ['~~~ts\n@fenced\n@never closed', []],
  ['@ nobody @- @.', []],
  // A change of script.
  ['请@builder看一下', ['builder']],
  ['@builderさん、お願いします', ['builder']],
  ['ビルダー@builder-2さんと@größe님', ['builder-2', 'größe']],
  ['빌더@builder에게 ให้@helperช่วย و@builder2 @runnerу', ['builder', 'helper', 'builder2', 'runner']],
  ['@usr_7aZ1qX5vNmG9kT3r看 和@me@example.com说', ['usr_7aZ1qX5vNmG9kT3r', 'me@example.com']],
  ['@日本語 @ビルダーbot @建2 请@张三', ['日本語', 'ビルダー', '建2']],
  ['写信给me@example.com或git@github.com:a/b，张三@example.com', []],
  ['a@b ё@в 看@看 x@1 看@1 1@builder /@builder看', []],
])('mentions of %j', (body, names) => {
  expect(mentionedNames(body)).toEqual(names)
})

test('mentions are bounded, and found in time', () => {
  const many = Array.from({ length: 200 }, (_, n) => `@a${n}`).join(' ')
  expect(mentionedNames(many)).toHaveLength(50)
  const costly = [
    '@a.'.repeat(30_000),
    '`'.repeat(100_000),
    '```\n'.repeat(25_000),
    '@'.repeat(100_000),
    '@a'.repeat(50_000),
    '看@a'.repeat(30_000),
    `@${'a看'.repeat(50_000)}`,
    '` `` '.repeat(20_000),
  ]
  expect(cpuMsOf(() => costly.map((text) => mentionedNames(text)))).toBeLessThan(2_000)
})

test('a preview is one short line', () => {
  expect(previewOfMessage('# Head\n\n  two\twords ')).toBe('# Head two words')
  expect(previewOfMessage('x'.repeat(160))).toBe('x'.repeat(160))
  expect(previewOfMessage('x'.repeat(161))).toBe(`${'x'.repeat(160)}…`)
  expect(previewOfMessage(`${'x'.repeat(159)}💥 more`)).toBe(`${'x'.repeat(159)}…`)
  expect(previewOfMessage(' '.repeat(100_000))).toBe('…')
})

test('people are referred to by id, address, or a form of their name', () => {
  const ada = { publicId: 'usr_1', name: 'Ada Lovelace', email: 'ada@example.com' }
  const twins = [
    { publicId: 'usr_2', name: 'Bob', email: 'bob@example.com' },
    { publicId: 'usr_3', name: 'bob', email: 'bob2@example.com' },
  ]
  const matchPerson = personMatcher([ada, ...twins])
  for (const name of ['usr_1', 'ADA@example.com', 'ada-lovelace', 'Ada-Lovelace']) expect(matchPerson(name)).toBe(ada)
  expect(matchPerson('bob')).toBeNull()
  expect(matchPerson('bob2@example.com')).toBe(twins[1])
  expect(matchPerson('nobody')).toBeNull()
  expect(personHandle({ name: '测试', email: 'Li.Na@example.com' })).toBe('li-na')
})

test('fifty names are found among twenty thousand people in a moment', () => {
  const people = Array.from({ length: 20_000 }, (_, at) => ({
    publicId: `usr_${at}`,
    name: `Person Number ${at}`,
    email: `p${at}@example.com`,
  }))
  const spent = cpuMsOf(() => {
    const matchPerson = personMatcher(people)
    for (let at = 0; at < 50; at++) expect(matchPerson(`nobody-${at}`)).toBeNull()
    expect(matchPerson('person-number-19999')).toBe(people.at(-1))
  })
  expect(spent).toBeLessThan(250)
})
