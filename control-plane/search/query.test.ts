import { expect, test } from 'vitest'
import { expressionOf, hasCompounds, readQuery } from './query.ts'

/** `(a b*)(c)`: items with their words; an asterisk marks the beginning of a word. */
const asked = (text: string, isExact = false): string => {
  const query = readQuery(text)
  if (query === null) return ''
  return expressionOf(query, isExact)
    .map((item) => `(${item.map((words) => words.map((w) => w.text + (w.isPrefix ? '*' : '')).join(' ')).join(' | ')})`)
    .join('')
}

test('the last word may go on, if it has begun', () => {
  expect(asked('roll back')).toBe('(roll)(back*)')
  expect(asked('plan b')).toBe('(plan)(b)')
  expect(hasCompounds(readQuery('roll back')!)).toBe(false)
})

test('what is written as one thing is asked for as one, or else by its words', () => {
  expect(asked('run_id', true)).toBe('(run id* runid* | runid*)')
  expect(asked('run_id x')).toBe('(run id runid | runid | run id)(x)')
  expect(asked('src/main.ts', true)).toBe('(src main ts* srcmain maints* | srcmaints*)')
})

test('words that are written without spaces need not stand together', () => {
  expect(asked('任务队列故障')).toBe('(任务 队列 故障 务队 列故 | 任务 队列 故障)')
  expect(asked('池')).toBe('(池*)')
  expect(asked('데이터베이스 설정 x')).toBe('(데이터베이스*)(설정*)(x)')
})

test.each(['', ' ', '"', '*', '((', '-', 'NULL\0'.slice(4), '!?…'])('there is no word in %j', (text) => {
  expect(readQuery(text)).toBeNull()
})

test('a query is bounded', () => {
  for (const text of ['ﷺ '.repeat(50), 'a.'.repeat(50), '数'.repeat(100)]) {
    const words = readQuery(text)!.items.flatMap((item) => item.words)
    expect(words.length).toBeLessThanOrEqual(101)
  }
})
