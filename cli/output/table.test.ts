import { expect, test } from 'vitest'
import { renderTable } from './table.ts'

const page = (data: unknown[], more = {}) => ({ object: 'list', data, hasMore: false, nextCursor: null, ...more })

test('a list is printed as a table with the requested columns', () => {
  const rows = [{ id: 'run_1', agent: { handle: '@a' } }, null, { id: 'run_22', agent: null }]
  expect(renderTable(page(rows), { columns: ['id', 'agent.handle'], width: null, nextFlag: null })).toBe(
    ['ID      AGENT HANDLE', 'run_1   @a', 'run_22  -', ''].join('\n'),
  )
})

test('the table says how to get the next page, and when the list is empty', () => {
  const more = page([{ id: 'a' }], { nextCursor: 'c2' })
  expect(renderTable(more, { columns: null, width: null, nextFlag: '--starting-after' })).toContain(
    '(more: --starting-after c2)',
  )
  expect(renderTable(more, { columns: null, width: null, nextFlag: null })).toContain('(more: nextCursor c2)')
  expect(renderTable(page([]), { columns: null, width: null, nextFlag: null })).toBe('(none)\n')
})

test('text from a server or an agent cannot control the terminal', () => {
  const text = renderTable(page([{ id: 'x\u001b[31m\u0007', name: 'a\nb' }]), {
    columns: null,
    width: null,
    nextFlag: null,
  })
  expect(text).toContain('x   a b')
  expect(renderTable({ note: '\u009b2J' }, { columns: null, width: null, nextFlag: null })).toBe('note:\n')
})

test('a value of several lines cannot pass for further fields', () => {
  const task = { id: 'tsk_1', description: 'first\nstatus: done', status: 'open' }
  expect(renderTable(task, { columns: null, width: null, nextFlag: null })).toBe(
    ['id:           tsk_1', 'description:  first', '              status: done', 'status:       open', ''].join('\n'),
  )
  expect(renderTable({}, { columns: null, width: null, nextFlag: null })).toBe(null)
})
