import { expect, test } from 'vitest'
import { plannedOnce } from './sqlite-client.ts'

test.each([
  ['select a from t join u on u.id = t.id where t.id = ? and (t.b, t.c) > (?, ?)', /= \+\? and .* > \(\+\?, \+\?\)$/],
  ['select a from t where b in (?, ?)', /in \(\+\?, \+\?\)$/],
  ['select a from t where b like ? escape ? limit ?', /like \? escape \+\? limit \?$/],
])('values do not decide how a statement is planned: %s', (source, expected) => {
  expect(plannedOnce(source)).toMatch(expected)
})

test('a question mark in a text or a name stays', () => {
  const source = `select "a?" from \`b?\` where c = 'it''s ? here' and d = ?`
  expect(plannedOnce(source)).toBe(source.replace(/\?$/, '+?'))
})
