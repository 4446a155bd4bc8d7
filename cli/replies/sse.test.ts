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

test('a character is whole, however its bytes are cut', () => {
  const reader = new SseReader()
  const bytes = Buffer.from('data: é🎉字\n\n')
  expect([...bytes].flatMap((byte) => reader.push(Uint8Array.of(byte)))).toEqual([
    { id: null, event: 'message', data: 'é🎉字' },
  ])
})

test('a line that never ends is refused, whatever field it is of', () => {
  for (const beginning of ['data: ', 'id: ', 'event: ', ': ', 'unknown: ', '']) {
    const reader = new SseReader()
    const piece = Buffer.alloc(1_048_576, 'x')
    const readAll = () => {
      for (let at = 0; at < 65; at++) reader.push(piece)
    }
    reader.push(Buffer.from(beginning))
    expect(readAll, beginning).toThrow('A message of the stream is too long.')
  }
})

test('a huge message that comes in one piece is refused, and what follows it is not read', () => {
  const reader = new SseReader()
  const piece = Buffer.from(`data: ${'x'.repeat(33_554_432)}\ndata: `)
  expect(() => reader.push(piece)).toThrow('too long')
  expect(() => reader.push(Buffer.from('\n\ndata: y\n\n'))).toThrow('terminated')
})

test('comments and messages without data may go on for ever: nothing of them is kept', () => {
  const reader = new SseReader()
  const piece = Buffer.from(`: ${'x'.repeat(1_048_576)}\n\nid: ${'y'.repeat(1_048_576)}\n\n`)
  for (let at = 0; at < 40; at++) expect(reader.push(piece)).toEqual([])
  expect(reader.push(Buffer.from('data: 1\n\n'))).toHaveLength(1)
})

test('unknown fields, fields without a value and a mark of byte order are ignored', () => {
  const reader = new SseReader()
  const text = '\ufefffoo: bar\nbaz\nretry: soon\nid: a\0b\nevent:\ndata:  two blanks\ndata\ndata:x:y\n\n'
  expect(reader.push(Buffer.from(text))).toEqual([{ id: null, event: 'message', data: ' two blanks\n\nx:y' }])
})
