import { expect, test } from 'vitest'
import { tokenGroups } from './tokens.ts'

const words = (text: string) => [...tokenGroups(text)].flatMap(({ tokens }) => tokens.map((token) => token.text))
const compounds = (text: string) =>
  [...tokenGroups(text)].flatMap((group) => [...group.compounds, ...(group.whole === null ? [] : [group.whole])])

test('words are of letters and digits alone', () => {
  expect(words('See src/main.ts, run_id and a@b.de?c=1 (v2.0)')).toEqual([
    'see',
    'src',
    'main',
    'ts',
    'run',
    'id',
    'and',
    'a',
    'b',
    'de',
    'c',
    '1',
    'v2',
    '0',
  ])
  expect(words('"NEAR(" * -x a:b \0 \u{d800} —…')).toEqual(['near', 'x', 'a', 'b'])
  expect(words('!?…')).toEqual([])
})

test.each([
  ['Straße', 'STRASSE'],
  ['café', 'cafe\u0301'],
  ['Ёлка', 'елка'],
  ['ΟΔΟΣ', 'οδός'],
  ['İstanbul', 'istanbul'],
  ['Łódź', 'lodz'],
  ['ＡＢＣ１', 'abc1'],
  ['ﾊﾟｽﾜｰﾄﾞ', 'パスワード'],
  ['مُحَمَّد', 'محمد'],
  ['ﬁle', 'file'],
])('%s is the same word as %s', (one, other) => expect(words(one)).toEqual(words(other)))

test('marks that make another letter are kept', () => {
  expect(words('パス')).not.toEqual(words('ハス'))
  expect(words('हिन्दी')).toEqual(['हिन्दी'.normalize('NFC')])
})

test('what is written as one thing is one word as well', () => {
  expect(compounds('run_id')).toEqual(['runid'])
  expect(compounds('src/main.ts')).toEqual(['srcmain', 'maints', 'srcmaints'])
  expect(compounds('std::vector, one two. Three')).toEqual(['stdvector'])
  expect(compounds(`${'a'.repeat(60)}-b`)).toEqual([])
})

test('scripts without spaces are cut alike in every sentence', () => {
  expect(words('数据库abc锁')).toEqual(['数据', '据库', '库', 'abc', '锁'])
  const sentence = words('我们的数据库连接池已满')
  for (const word of words('连接池').slice(0, -1)) expect(sentence).toContain(word)
  expect(words('ฐานข้อมูล')).toEqual(['ฐาน', 'ข้อมูล'])
})

test('a word stands where it is in the text', () => {
  const text = 'Ärger mit İD: ﾊﾟｽ, 数据库 und ½'
  for (const { tokens } of tokenGroups(text)) {
    for (const { text: word, start, end } of tokens) {
      expect(end).toBeGreaterThan(start)
      expect(words(text.slice(start, end))).toContain(word)
    }
  }
})

test('a long word is cut, without a half of a character', () => {
  expect(words('a'.repeat(300_000))).toEqual(['a'.repeat(100)])
  for (const word of words('a𐐷'.repeat(100))) expect(word.isWellFormed()).toBe(true)
})
