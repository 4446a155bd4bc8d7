import { expect, test } from 'vitest'
import { jsonLine, jsonLineReader } from './lines.ts'

const messages = [{ text: 'plain' }, { text: 'line\nbreak' }, { text: 'grüße 🦔' }, 7, null]
const stream = new TextEncoder().encode(messages.map(jsonLine).join(''))

function read(chunks: readonly Uint8Array[], maxLineBytes = 1_000): { lines: string[]; isTooLong: boolean } {
  const push = jsonLineReader(maxLineBytes)
  const all = chunks.map(push)
  return { lines: all.flatMap(({ lines }) => lines), isTooLong: all.some(({ isTooLong }) => isTooLong) }
}
const cutAt = (at: number) => [stream.subarray(0, at), stream.subarray(at)]
const bytesOf = (text: string) => new TextEncoder().encode(text)

test('messages come out as they went in, wherever the stream is cut', () => {
  for (let at = 0; at <= stream.length; at++) {
    const { lines, isTooLong } = read(cutAt(at))
    expect({ at, isTooLong, messages: lines.map((line) => JSON.parse(line) as unknown) }).toEqual({
      at,
      isTooLong: false,
      messages,
    })
  }
  expect(read([...stream].map((byte) => Uint8Array.of(byte))).lines).toEqual(read([stream]).lines)
})

test('the reader waits for the rest of an incomplete line', () => {
  expect(read([bytesOf('1\n\n2')])).toEqual({ lines: ['1', ''], isTooLong: false })
})

test.each([[['12345\n123456789\n1\n']], [['12345\n12345', '6789', '\n1\n']], [['12345\n123456789']]])(
  'a line beyond the limit ends the reading, after the lines before it: %j',
  (chunks) => {
    expect(read(chunks.map(bytesOf), 6)).toEqual({ lines: ['12345'], isTooLong: true })
  },
)
