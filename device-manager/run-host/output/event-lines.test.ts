import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { linkLimits } from '../../../shared/device/limits.ts'
import { nothingWritten, pendingEvent, toRows } from './event-lines.ts'

const text = (words: string) => pendingEvent(5, { kind: 'text', data: { text: words } })

test('an event that no link takes is written as a declared gap, and counts as lost', () => {
  const long = pendingEvent(6, { kind: 'tool_call', data: { toolCallId: 'a', name: 'x'.repeat(3_000_000), input: {} } })
  const { rows, after } = toRows(nothingWritten(), [text('before'), long, text('after')])
  const lines = rows.map(({ line }) => Buffer.from(line).toString())
  const { data, ...gap } = JSON.parse(lines[1]!) as { data: { bytes: number; reason: string } }
  expect(gap).toEqual({ seq: 2, at: 6, kind: 'gap' })
  expect(data).toEqual({ bytes: expect.any(Number) as number, reason: 'event_too_long' })
  expect(data.bytes).toBeGreaterThan(3_000_000)
  // The call was made all the same.
  expect(after.stats).toMatchObject({ gapBytes: data.bytes, toolCalls: 1 })
  expect(after.hash.copy().digest('hex')).toBe(createHash('sha256').update(lines.join('')).digest('hex'))
  expect(rows.map(({ seq }) => seq)).toEqual([1, 2, 3])
})

test('an event that just fits is written as it is', () => {
  const around = toRows(nothingWritten(), [text('')]).rows[0]!.line.length - 1
  const { rows, after } = toRows(nothingWritten(), [text('x'.repeat(linkLimits.lineBytes - around))])
  expect(rows[0]!.line.length).toBe(linkLimits.lineBytes + 1)
  expect(after.stats.gapBytes).toBe(0)
})
