import { expect, test } from 'vitest'
import { jqFilter } from './jq.ts'

const list = {
  data: [
    { id: 'run_1', n: 3, note: 'a\nb' },
    { id: 'run_2', n: 5, note: null },
  ],
}

test.each([
  ['.data[].id', 'run_1\nrun_2\n'],
  ['.data[0] | keys', '["id","n","note"]\n'],
  ['.data[1:] | length', '1\n'],
  ['.data[] | [.id, .n] | @tsv', 'run_1\t3\nrun_2\t5\n'],
  ['.data | map(.n) | add / length', '4\n'],
  ['.data[] | select(.note | . != null and test("b$")) | .id', 'run_1\n'],
  ['empty', ''],
])('%s', async (expression, printed) => expect((await jqFilter(expression))(list)).toBe(printed))

test('an expression that cannot be read is refused before there is a value', async () => {
  await expect(jqFilter('.data[')).rejects.toMatchObject({ code: 'cli.usage' })
  await expect(jqFilter('nothing(1)')).rejects.toMatchObject({ code: 'cli.usage' })
})

test.each(['last(repeat(1))', 'def f: f; f', '[range(0; infinite)] | length'])('%s is stopped', async (expression) => {
  await expect(
    jqFilter(`if . == null then . else ${expression} end`, 200).then((filter) => filter(list)),
  ).rejects.toMatchObject({
    code: 'cli.jq_failed',
    message: expect.stringContaining('longer than'),
  })
})

test('what the machine has is out of its reach', async () => {
  expect((await jqFilter('env | has("SVC_TOKEN"), .HOME'))(null)).toBe('false\n/home/web_user\n')
  await expect(jqFilter('import "a" as $a; .')).rejects.toMatchObject({ code: 'cli.usage' })
})
