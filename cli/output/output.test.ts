import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createOutput } from './output.ts'

const terminal = (columns: number | undefined) => {
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns })
  const stdout = stream as unknown as NodeJS.WriteStream
  const out = createOutput({ stdout, stderr: () => stdout, wanted: null, isDebugging: false, isInRun: false })
  return { out, printed: () => String(stream.read() ?? '') }
}

test.each([
  ['as wide as its terminal', 8, 'ID\nrun_1234\n', 8],
  ['whole on a terminal that has no size', 0, 'ID\nrun_123456789\n', 100],
  ['whole where nobody knows the width', undefined, 'ID\nrun_123456789\n', 100],
])('a table is %s', async (_, columns, expected, width) => {
  const { out, printed } = terminal(columns)
  await out.result({ data: [{ id: 'run_123456789' }] }, ['id'])
  expect([printed(), out.width]).toEqual([expected, width])
})
