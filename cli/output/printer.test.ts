import { describe, expect, test } from 'vitest'
import { createPrinter, type PrinterOptions } from './printer.ts'
import type { Shape } from './shape.ts'
import { duration, relativeTime } from './times.ts'
import { cut, widthOf } from './width.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const now = Date.parse('2026-03-14T15:09:26.535Z')
const page = (data: readonly unknown[], more = {}) => ({
  object: 'list',
  data,
  hasMore: false,
  nextCursor: null,
  ...more,
})
const print = (value: unknown, shape: Shape = {}, options: Partial<PrinterOptions> = {}) =>
  createPrinter(shape, { width: 80, isPlain: false, colours: 'none', now, ...options }).whole(value).text
const runs: Shape = { look: 'Run', list: 'data', nextFlag: '--after', hasAll: true }

describe('what has no look', () => {
  test('shows the most telling fields of a list, and all of one', () => {
    const rows = [{ id: 'x_1', name: 'a\u001b[31m\u0007\nb', other: { deep: [1] } }, null, { id: 'x_22', name: null }]
    expect(print(page(rows))).toBe('ID    NAME\nx_1   a b\nx_22  -\n')
    const one = { id: 'x_1', owner: { id: 'o', since: '2026-03-14T15:06:26.535Z' }, tags: ['a', 'b'], none: null }
    expect(print(one)).toBe(
      [
        'id           x_1                         owner.id     o',
        'owner.since  3 minutes ago               tags         a, b',
        '',
      ].join('\n'),
    )
    expect(print({})).toBe('{}\n')
    expect(print('text')).toBe('"text"\n')
  })

  test('a value of several lines cannot pass for further fields', () => {
    expect(print({ id: 'tsk_1', status: 'open', note: 'first\nstatus  done\n' })).toBe(
      'id      tsk_1                            status  open\n\nnote\n  first\n  status  done\n',
    )
  })
})

describe('a table', () => {
  test('says how to get the next page, and when it is empty', () => {
    expect(print(page([{ id: 'run_1' }], { nextCursor: 'c\u001b[2J2' }), runs)).toContain(
      '(more: --after c2, or --all)\n',
    )
    expect(print(page([{ id: 'a' }], { nextCursor: 'c2' }))).toContain('(more: nextCursor c2)\n')
    expect(print(page([]), runs)).toBe('(none)\n')
    expect(print(page([]), runs, { isPlain: true })).toBe('')
    expect(print(page([null, null]), runs)).toBe('(none)\n')
  })

  test('fits every width, by the columns that characters take', () => {
    const title = '登录页面 👩‍👩‍👧‍👦 e\u0301e\u0301 and more'.repeat(4)
    const rows = [
      { id: 'run_1', status: 'failed', errorCode: title, agent: { handle: '@builder' }, task: { id: 'SVC-1', title } },
      { id: title, status: title, agent: { handle: title }, waitingOn: { kind: title } },
    ]
    for (const width of [1, 2, 7, 20, 33, 40, 60, 80, 100, 160, 300])
      for (const line of print(page(rows), runs, { width }).split('\n'))
        if (!line.startsWith('(')) expect(widthOf(line), `${width}: ${line}`).toBeLessThanOrEqual(width)
    expect(print(page(rows), runs, { width: null })).toContain(title)
  })

  test('a column that is empty in all rows is left out, unless a program counts on it', () => {
    const rows = [{ id: 'run_1', status: 'queued', createdAt: '2026-03-14T15:06:26.535Z' }]
    expect(print(page(rows), runs)).toBe('ID     STATUS  CREATED\nrun_1  queued  3 minutes ago\n')
    expect(print(page(rows), runs, { isPlain: true })).toBe('run_1\tqueued\t\t\t2026-03-14T15:06:26.535Z\t\t\t\t\t\n')
  })

  test('pages share the columns of the first, and the end says what was left out', () => {
    const printer = createPrinter(runs, { width: 24, isPlain: false, colours: 'none', now })
    const texts = [[{ id: 'run_1', status: 'queued' }], [{ id: 'run_123456', status: 'cancelled' }]].map(
      (rows) => printer.page(page(rows)).text,
    )
    expect([...texts, printer.end().text]).toEqual([
      'ID     STATUS  AGENT\nrun_1  queued  -\n',
      'run_…  cance…  -\n',
      '(7 columns left out: --json shows all)\n',
    ])
  })

  test('an answer of other types than those of the contract is shown as far as it goes', () => {
    const odd = [
      { id: 7, status: { a: 1 }, agent: 'x', task: [], createdAt: 'no time', costUsd: {}, waitingOn: 3 },
      'text',
      5,
    ]
    expect(print(page(odd), runs)).toContain('no time')
    expect(print({ object: 'run', id: ['a', ['b']], status: 9 }, { look: 'RunDetail' })).toContain('a, b')
    expect(print(JSON.parse('{"__proto__":{"id":"x"},"id":"y"}'), { look: 'RunDetail' })).toContain('y')
  })

  test('of long texts only the beginning is looked at', () => {
    const body = '登录\u001b['.repeat(100_000)
    const rows = Array.from({ length: 100 }, (_, at) => ({ id: `msg_${at}`, author: { handle: '@a' }, body }))
    expect(cpuMsOf(() => print(page(rows), { look: 'Comment', list: 'data' }))).toBeLessThan(3_000)
  })
})

test('colours say how a run stands, and end with the cell', () => {
  const rows = [
    { id: 'run_1', status: 'failed' },
    { id: 'run_2', status: 'succeeded' },
  ]
  const text = print(page(rows), runs, { colours: 'basic' })
  expect(text).toContain('\u001b[31mfailed\u001b[0m')
  expect(text).toContain('\u001b[32msucceeded\u001b[0m')
})

test('a change that waits for approval looks like one, whatever was changed', () => {
  const waits = { object: 'platform_change', approvalId: 'apr_1', status: 'pending' }
  expect(print(waits, { look: 'Agent' })).toContain('Next: svc approval get apr_1')
})

test('times and widths', () => {
  const at = (ms: number) => relativeTime(new Date(now - ms).toISOString(), now)
  expect([0, 90_000, 3_600_000, 86_400_000 * 45, -7_200_000, 7_195_000, -7_195_000].map(at)).toEqual([
    'just now',
    '1 minute ago',
    '1 hour ago',
    '1 month ago',
    'in 2 hours',
    '1 hour ago',
    'in 2 hours',
  ])
  expect([400, 72_000, 3_900_000, 90_000_000].map(duration)).toEqual(['0s', '1m 12s', '1h 5m', '1d 1h'])
  expect([cut('登录页面', 5), cut('登录页面', 8), cut('abc', 2), cut('abc', 0)]).toEqual([
    '登录…',
    '登录页面',
    'a…',
    '',
  ])
})
