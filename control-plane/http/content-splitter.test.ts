import { expect, test } from 'vitest'
import { ContentSplitter, SplitError } from './content-splitter.ts'

/** Splits these pieces, and returns the rest of the body and the content. */
function splitOf(pieces: readonly Buffer[], restLimit = 10_000): { rest: unknown; content: string | null } {
  const splitter = new ContentSplitter('contentBase64', restLimit)
  let content: string | null = null
  for (const piece of pieces)
    for (const split of splitter.push(piece)) {
      if (split.kind === 'begin') content = ''
      if (split.kind === 'bytes') content += Buffer.from(split.bytes).toString('latin1')
    }
  return { rest: JSON.parse(splitter.end().toString('utf8')), content }
}

/** The body as a whole, byte by byte, and cut at each place: always the same. */
function splitEachWay(text: string) {
  const bytes = Buffer.from(text)
  const whole = splitOf([bytes])
  expect(splitOf([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole)
  for (let at = 1; at < bytes.length; at++) {
    expect([at, splitOf([bytes.subarray(0, at), bytes.subarray(at)])]).toEqual([at, whole])
  }
  return whole
}

const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64')
/** The bytes from 0 to 255; their base64 has all characters of the alphabet. */
const allBytes = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join('')

test.each([
  ['alone', `{"contentBase64":"${base64('hello')}"}`, { contentBase64: 0 }, 'hello'],
  ['first', `{"contentBase64":"${base64('hi')}","name":"a"}`, { contentBase64: 0, name: 'a' }, 'hi'],
  ['last', `{"name":"a","contentBase64":"${base64('hey')}"}`, { name: 'a', contentBase64: 0 }, 'hey'],
  ['among white space', `\n{ "contentBase64"\t: \r\n "${base64('x')}" , "n" : 1 }\n`, { contentBase64: 0, n: 1 }, 'x'],
  ['empty', '{"contentBase64":""}', { contentBase64: 0 }, ''],
  [
    'after nested objects',
    `{"a":{"b":[{}]},"contentBase64":"${base64('z')}"}`,
    { a: { b: [{}] }, contentBase64: 0 },
    'z',
  ],
  ['with an escaped key', `{"content\\u0042ase64":"${base64('y')}"}`, { contentBase64: 0 }, 'y'],
  ['all bytes', `{"contentBase64":"${base64(allBytes)}"}`, { contentBase64: 0 }, allBytes],
  ['escaped slashes', `{"contentBase64":"${base64(allBytes).replaceAll('/', '\\/')}"}`, { contentBase64: 0 }, allBytes],
  ['escaped letters', `{"contentBase64":"\\u0059\\u0051\\u003D\\u003d"}`, { contentBase64: 0 }, 'a'],
])('content %s is taken out, however it is cut', (_, text, rest, content) => {
  expect(splitEachWay(text)).toEqual({ rest, content })
})

test.each([
  ['in a nested object', `{"a":{"contentBase64":"eA=="}}`],
  ['in a list', `[{"contentBase64":"eA=="}]`],
  ['as a value', `{"a":"contentBase64","b":"x"}`],
  ['in a text', `{"a":"\\"contentBase64\\":\\"eA==\\""}`],
  ['as a part of a key', `{"contentBase64x":"a","xcontentBase64":"b"}`],
  ['with a value of another kind', `{"contentBase64":null,"a":["x"],"b":"y"}`],
  ['with a number', `{"contentBase64":12}`],
  ['with an object', `{"contentBase64":{"contentBase64":"x"}}`],
])('%s nothing is taken out', (_, text) => {
  expect(splitEachWay(text)).toEqual({ rest: JSON.parse(text), content: null })
})

const flawOf = (text: string, restLimit?: number): string => {
  try {
    splitOf([Buffer.from(text)], restLimit)
    return 'none'
  } catch (error) {
    if (error instanceof SplitError) return error.flaw
    throw error
  }
}

test.each([
  'a',
  'YQ',
  'YQ=',
  'YQ===',
  '=',
  '====',
  'YQ==YQ==',
  'YWI=YWJj',
  'Y=Q=',
  'YWJj=',
  'YW\\nJj',
  'YWJ j',
  'YWJ-',
  'YWJ_',
  'YWJé',
  'YWJ\\',
  'YWJ\\u00e9',
  'YWJ\\u2100',
  'YWJj\\u0000',
])('%s is no base64', (content) => {
  expect(flawOf(`{"contentBase64":"${content}"}`)).toBe('base64')
})

test('content that does not end, that comes twice, and a rest that is too large are told', () => {
  expect(flawOf('{"contentBase64":"YWJj')).toBe('base64')
  expect(flawOf('{"contentBase64":"YWJj","contentBase64":"YWJj"}')).toBe('twice')
  expect(flawOf('{"contentBase64":"YWJj","contentBase64":7}')).toBe('twice')
  expect(flawOf('{"contentBase64":null,"contentBase64":"YWJj"}')).toBe('twice')
  expect(flawOf(`{"contentBase64":"YWJj","a":"${'x'.repeat(100)}"}`, 100)).toBe('rest')
  expect(flawOf(`{"contentBase64":"${'YWJj'.repeat(1_000)}"}`, 100)).toBe('none')
})

test.each(['.5', 'e5', '5', '"YWJj"'])('content before %s is no JSON', (more) => {
  expect(() => splitOf([Buffer.from(`{"contentBase64":"YWJj"${more}}`)])).toThrow(SyntaxError)
})
