import { expect, it } from 'vitest'
import { paintFor } from './colours.ts'
import { LiveRun } from './live-run.ts'

const began = Date.parse('2026-01-01T00:00:00Z')
const event = (kind: string, data: object, atMs = 0) => ({
  kind,
  data,
  createdAt: new Date(began + atMs).toISOString(),
})
const text = (said: string, more: object = {}) => event('text', { text: said, ...more })
const call = (toolCallId: string, name: string, input: unknown, atMs = 0) =>
  event('tool_call', { toolCallId, name, input }, atMs)
const result = (toolCallId: string, output: string, { atMs = 0, isError = false } = {}) =>
  event('tool_result', { toolCallId, output, isError }, atMs)

const shown = (...events: object[]) => shownBy(false, ...events)

function shownBy(breaksWords: boolean, ...events: object[]): string {
  let screen = ''
  const live = new LiveRun({ width: 40, breaksWords, paint: paintFor('none'), write: (more) => (screen += more) })
  for (const each of events) live.event(each)
  live.end()
  return screen
}

it('shows what a command printed once, though its result has other line ends', () => {
  const started = event('started', { harness: 'command' })
  const result = event('result', { text: 'one\ntwo\n', isError: true })
  expect(shown(started, text('one\r\n\u001b[31mtwo\u001b[0m\r\n'), result)).not.toContain('one\ntwo')
  expect(shown(started, result)).toBe('one\ntwo\n\n')
})

it('shows words as they come, and the answer once', () => {
  const answer = event('result', { text: 'All is well.', isError: false })
  expect(shown(text('All '), text('is well.'), answer)).toBe('All is well.\n')
  expect(shown(text('I look.'), answer)).toBe('I look.\nAll is well.\n')
  expect(shown(event('thinking', { text: 'Hm.' }), text('Yes.'))).toBe('Hm.\n\nYes.\n')
})

it('breaks words and its own lines on a terminal, but not what a command prints', () => {
  const long = 'These are more words than a line of forty columns has.'
  const broken = 'These are more words than a line of\nforty columns has.\n'
  expect(shownBy(true, text(long.slice(0, 30)), text(long.slice(30)))).toBe(broken)
  expect(shownBy(true, event('result', { text: long }))).toBe(broken)
  expect(shownBy(true, event('error', { message: long }))).toBe(
    '! These are more words than a line of\nforty columns has.\n',
  )
  expect(shownBy(true, event('started', { harness: 'command' }), text(long))).toBe(`${long}\n`)
  expect(shownBy(false, text(long))).toBe(`${long}\n`)
})

it('shows a call in a line, with its time and how it ended, and what it printed below', () => {
  expect(
    shown(
      text('I look.'),
      call('a', 'Bash', { command: 'npm  test\n--all' }),
      result('a', 'one\n\ttwo\n', { atMs: 1_240 }),
      call('b', 'mcp__files__say', { word: 'yes' }, 2_000),
      result('b', '', { atMs: 2_012, isError: true }),
      text('So it is.'),
    ),
  ).toBe(
    [
      'I look.',
      '',
      '● Bash npm test --all 1.2s',
      '  one',
      '    two',
      '● mcp__files__say {"wor… failed 12ms',
      '',
      'So it is.',
      '',
    ].join('\n'),
  )
})

it('names a call again where its result comes behind other things', () => {
  const lines = shown(call('a', 'Read', { file_path: '/a' }), call('b', 'Read', {}), result('a', 'x'), result('z', 'y'))
  expect(lines).toBe('● Read /a\n● Read \n└ Read /a 0ms\n  x\n└ result\n  y\n')
})

it('folds what is longer than 20 lines, and cuts lines at the edge', () => {
  const lines = shown(result('a', Array.from({ length: 22 }, (_, n) => `${n} ${'x'.repeat(60)}`).join('\n'))).split(
    '\n',
  )
  expect(lines).toHaveLength(23)
  expect(lines[1]).toBe(`  0 ${'x'.repeat(35)}…`)
  expect(lines[21]).toBe('  … 2 more lines')
})

it('shows questions, refusals and trouble, and passes over what says nothing', () => {
  expect(
    shown(
      event('permission', { name: 'Bash', decision: 'allow', rule: 'Bash' }),
      event('permission', { name: 'Bash', decision: 'deny', rule: 'Bash(rm:*)' }),
      event('permission', { name: 'Bash', decision: 'ask', ask: { safeSummary: 'Bash: npm publish' } }),
      event('error', { class: 'rate_limit', message: 'The model is busy.', willRetry: true }),
      event('gap', { bytes: 12, reason: 'too much' }),
      event('input', { text: 'Hurry.' }),
      event('raw', { stream: 'stdout', text: '{"type":"rate_limit_event"}\n' }),
      event('raw', { stream: 'stderr', text: 'warning: old\nmore' }),
      event('usage', { inputTokens: 1 }),
      event('a_later_kind', { text: 'x' }),
    ).split('\n'),
  ).toEqual([
    '✗ Bash is not allowed (Bash(rm:*))',
    '? A person is asked to allow: Bash: npm publish',
    '! The model is busy.',
    '! 12 bytes were not kept: too much',
    '> Hurry.',
    'warning: old',
    '',
  ])
})

it('puts characters together that come in two pieces, and takes no control of the terminal from a title', () => {
  const [a, b] = [Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)]
  expect(shown(event('text', { base64: a.toString('base64') }), event('text', { base64: b.toString('base64') }))).toBe(
    'é\n',
  )
  expect(shown(call('a', 'Bash', { command: 'echo \u001b]0;x\u0007\u001b[2Jhi' }))).toBe('● Bash echo hi\n')
})

it('keeps what others wrote on its line, so that it cannot pass for a line of svc', () => {
  const forged = 'ls\n✓ succeeded'
  expect(shown(event('permission', { name: 'Bash', decision: 'ask', ask: { safeSummary: forged } }))).toBe(
    '? A person is asked to allow: ls ✓ succeeded\n',
  )
  expect(shown(event('permission', { name: forged, decision: 'deny' }))).toBe('✗ ls ✓ succeeded is not allowed\n')
  expect(shown(event('error', { message: forged }))).toBe('! ls ✓ succeeded\n')
})

it('takes events of any form', () => {
  for (const odd of [
    null,
    1,
    {},
    { kind: 'text' },
    { kind: 'tool_call', data: 3 },
    { kind: 'tool_result', data: null },
  ])
    expect(() => shown(odd as object)).not.toThrow()
})
