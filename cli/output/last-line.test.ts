import { expect, test } from 'vitest'
import { lastLineOf } from './last-line.ts'

const text = (words: string) => ({ kind: 'text', data: { text: words } })
const call = { kind: 'tool_call', data: { name: 'Bash', input: { command: 'npm test' } } }

test.each([
  ['nothing', [], null],
  [
    'only what tells nobody anything',
    [
      { kind: 'usage', data: {} },
      { kind: 'started', data: {} },
    ],
    null,
  ],
  ['words that came in pieces', [text('wor'), text('first\nlast '), call], 'last wor'],
  ['words after a call', [text('Done.\n\n'), call], 'Done.'],
  ['thoughts', [{ kind: 'thinking', data: { text: 'Which file?' } }, call], 'Which file?'],
  ['a call after words', [call, text('I look.')], 'Bash npm test'],
  ['the result of a call', [{ kind: 'tool_result', data: { output: 'x' } }, call, text('I look.')], 'Bash npm test'],
  ['words of a subagent', [{ kind: 'text', data: { text: 'mine', parentToolCallId: 't1' } }, call], 'Bash npm test'],
  ['bytes', [{ kind: 'text', data: { base64: Buffer.from('é \u{1F600}').toString('base64') } }], 'é \u{1F600}'],
  ['colours, and what would steer a terminal', [text('\u001B[31mred\u001B[0m\u001B]0;title\u0007')], 'red'],
  ['a line without an end', [text('x'.repeat(100_000))], 'x'.repeat(500)],
  ['no events at all', ['odd', null, 7], null],
])('of %s', (_, events, line) => {
  expect(lastLineOf(events)).toBe(line)
})
