import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { ApiFailure } from '../errors/cli-error.ts'
import { createOutput } from './output.ts'

const terminal = (columns: number | undefined) => {
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns })
  const stdout = stream as unknown as NodeJS.WriteStream
  const out = createOutput({
    stdout,
    stderr: () => stdout,
    wanted: null,
    hasColours: false,
    hasPalette: false,
    pager: null,
    isDebugging: false,
    isInRun: false,
    now: () => 0,
  })
  return { out, printed: () => String(stream.read() ?? '') }
}

test.each([
  ['as wide as its terminal', 8, 'ID\nrun_123…\n', 8],
  ['whole on a terminal that has no size', 0, 'ID\nrun_123456789\n', 100],
  ['whole where nobody knows the width', undefined, 'ID\nrun_123456789\n', 100],
])('a table is %s', async (_, columns, expected, width) => {
  const { out, printed } = terminal(columns)
  await out.result({ data: [{ id: 'run_123456789' }] })
  expect([printed(), out.width]).toEqual([expected, width])
})

test.each<[string, unknown, string]>([
  ['a gateway', { message: 'Forbidden' }, 'svc: The server answered with status 403.\n'],
  ['nothing', { error: null }, 'svc: The server answered with status 403.\n'],
  [
    'objects that are no text',
    { error: { message: { toString: 1 }, allowedValues: [{ toString: 1 }, 'a'] } },
    '{"toString":1}, a',
  ],
  [
    'fields that are none',
    { error: { message: 'No.', details: { fields: [null, { path: 'a', message: 'is b' }] } } },
    '  a: is b',
  ],
  [
    'a refused program',
    { error: { message: 'No.', param: 'source', details: { line: 3, column: 9 } } },
    'svc: No.\n  at: source, line 3, column 9\n',
  ],
  [
    'a refused program without a place',
    { error: { message: 'No.', param: 'source', details: { line: null, column: null } } },
    'svc: No.\n  at: source\n',
  ],
])('the failure that %s answers is told in a sentence', (_, body, expected) => {
  const { out, printed } = terminal(80)
  expect(out.failure(new ApiFailure(403, body))).toBe(1)
  expect(printed()).toContain(expected)
})
