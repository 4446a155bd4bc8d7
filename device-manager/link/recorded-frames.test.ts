import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { decodeFrame } from '../../shared/device/frame.ts'
import { deviceMessage, serverMessage } from '../../shared/device/protocol.ts'

// The words of either end of a link in earlier versions must be read for ever: recordings in test/fixtures/link, one message a
// line, binary frames in base64. A file is added when messages or fields are; none is ever changed.

const folder = join(import.meta.dirname, '../../test/fixtures/link')
interface Line {
  from: 'device' | 'server'
  message?: { type: string }
  frame?: string
}
const linesOf = (file: string) =>
  readFileSync(join(folder, file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))

describe.each(files)('%s', (file) => {
  it.each(linesOf(file).map((line) => ({ ...line, name: line.message?.type ?? 'frame' })))(
    '$from: $name',
    ({ from, message, frame }) => {
      if (frame !== undefined) {
        const decoded = decodeFrame(Buffer.from(frame, 'base64'))
        expect(decoded).toMatchObject({ ok: true })
        return
      }
      const parsed = (from === 'device' ? deviceMessage : serverMessage).parse(message)
      // Nothing of it is lost; what came later is added with a value that changes nothing.
      expect(parsed).toMatchObject(message!)
    },
  )
})

it('every type of message is recorded', () => {
  const lines = files.flatMap(linesOf)
  const said = (from: Line['from']) =>
    new Set(lines.flatMap((line) => (line.from === from && line.message ? [line.message.type] : [])))
  const typesOf = (union: typeof deviceMessage | typeof serverMessage) =>
    union.options.map(({ shape }) => shape.type.value).toSorted()
  expect([...said('device')].toSorted()).toEqual(typesOf(deviceMessage))
  expect([...said('server')].toSorted()).toEqual(typesOf(serverMessage))
})
