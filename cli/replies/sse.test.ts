import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatMessages } from '../../test/kit/sse-text.ts'
import { SseReader, type SseMessage } from './sse.ts'

const messages: SseMessage[] = [
  { id: 'a1', event: 'text', data: '{"text":"héllo 🎉"}' },
  { id: 'a2', event: 'message', data: 'two\nlines' },
  { id: null, event: 'ended', data: '{}' },
]

test('messages are complete, wherever the stream is cut and whichever line endings it has', () => {
  for (const lineEnd of ['\n', '\r\n', '\r']) {
    const bytes = Buffer.from(formatMessages(messages, lineEnd) + (lineEnd === '\r' ? ':\n' : ''))
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 12 }), (cuts) => {
        const reader = new SseReader()
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
        const read = places.slice(1).flatMap((end, at) => reader.push(bytes.subarray(places[at], end)))
        expect(read).toEqual(messages)
      }),
    )
  }
})

test('comments and messages without data are ignored', () => {
  const reader = new SseReader()
  expect(reader.push(Buffer.from(':\n\nid: x\n\nevent: y\ndata: 1\n\n'))).toEqual([{ id: null, event: 'y', data: '1' }])
})

test('a long line is read in the time of its length, however small its pieces are', { timeout: 10_000 }, () => {
  const reader = new SseReader()
  const piece = Buffer.alloc(4096, 'x')
  const count = 4_096
  reader.push(Buffer.from('data: '))
  for (let at = 0; at < count; at++) expect(reader.push(piece)).toHaveLength(0)
  const [message] = reader.push(Buffer.from('\n\n'))
  expect(message!.data).toHaveLength(count * piece.length)
})

test('a message that never ends is refused, in whatever lines it comes', () => {
  const reader = new SseReader()
  const lines = Buffer.from(`data: ${'x'.repeat(1_048_576)}\n`)
  const readAll = () => {
    for (let at = 0; at < 65; at++) reader.push(lines)
  }
  expect(readAll).toThrow('too long')
})
