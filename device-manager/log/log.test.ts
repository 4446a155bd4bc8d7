import { expect, test } from 'vitest'
import { logLine } from './log.ts'

const head = { level: 'warn', at: 1_767_225_600_000, message: 'something' } as const

test('a line has level, time, fields and message, in this order', () => {
  expect(logLine(head, { runId: 'run_1', left: undefined, count: 2n })).toBe(
    '{"level":40,"time":"2026-01-01T00:00:00.000Z","runId":"run_1","count":"2","msg":"something"}\n',
  )
})

test('an error says what it is, where it comes from, its code and its cause', () => {
  const error = Object.assign(new TypeError('outer', { cause: new Error('inner') }), { code: 'EX' })
  const { err } = JSON.parse(logLine(head, { err: error })) as { err: Record<string, unknown> }
  expect(err).toMatchObject({ type: 'TypeError', message: 'outer', code: 'EX', cause: { message: 'inner' } })
  expect(err['stack']).toContain('log.test')
})

test('fields that cannot be written lose no message and throw nothing', () => {
  const ring: Record<string, unknown> = {}
  ring['ring'] = ring
  const trap = {
    get trap() {
      throw new Error('no')
    },
  }
  for (const fields of [ring, { trap }, { fields: ring }]) {
    expect(JSON.parse(logLine(head, fields))).toMatchObject({ level: 40, msg: 'something' })
  }
  expect(logLine(head, { text: 'a\nb' }).split('\n')).toHaveLength(2)
})

test('no token of this service gets into the log', () => {
  const token = `svc_dev_${'a1B2'.repeat(10)}xyz`
  const line = logLine(head, { header: `Bearer ${token}`, err: new Error(`refused ${token}`) })
  expect(line).not.toContain(token)
  expect(line).toContain('[redacted:svc_dev]')
})
