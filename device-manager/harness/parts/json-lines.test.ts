import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { specOf } from '../../../test/kit/harness-recordings.ts'
import { acpDialogue } from '../acp/dialogue.ts'
import { claudeDialogue } from '../claude/dialogue.ts'
import { codexDialogue } from '../codex/dialogue.ts'
import { cursorDialogue } from '../cursor/dialogue.ts'
import { opencodeDialogue } from '../opencode/dialogue.ts'
import { userMessage } from '../claude/call-questions.ts'
import { stdinLine } from '../opencode/orders.ts'
import { httpOrder } from './http-lines.ts'
import { jsonLine, jsonObject, parseJson } from './json-lines.ts'

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const line = (text: string) => Buffer.from(`${text}\n`)

it('an object that is nested deep is read as far as it can be written again', () => {
  const deep = (depth: number) => `{"a":${nested(depth)},"b":"${'['.repeat(5_000)}"}`
  expect(JSON.stringify(jsonObject(line(deep(999))))).toBe(deep(999))
  expect(jsonObject(line(deep(1_000)))).toBeNull()
  expect(() => parseJson(nested(1_000_000))).toThrow('nested too deep')
  expect(parseJson(nested(1_000))).toHaveLength(1)
})

const deep = nested(100_000)
const inEvent = (text: string) => `{"event":{"type":"message.part.updated","properties":${text}}}`
it.each([
  ['claude', claudeDialogue, `{"type":"assistant","message":{"content":[{"type":"new","x":${deep}}]}}`],
  ['claude', claudeDialogue, `{"type":"user","message":{"content":[{"type":"text","x":${deep}}]}}`],
  [
    'codex',
    codexDialogue,
    `{"method":"item/started","params":{"threadId":"t","item":{"id":"i","type":"webSearch","x":${deep}}}}`,
  ],
  [
    'cursor',
    cursorDialogue,
    `{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"x":{"args":${deep}}}}`,
  ],
  ['acp', acpDialogue, `{"id":1,"method":"fs/read","params":${deep}}`],
  ['opencode', opencodeDialogue, inEvent(deep)],
])('a line of %s that is nested too deep is kept raw', (_, dialogueOf, text) => {
  const dialogue = dialogueOf(specOf())
  dialogue.open()
  const { events, asks } = dialogue.push(line(text))
  const kept = events.map(({ kind, data }) => (kind === 'raw' ? data.text : kind)).join('')
  expect(kept).toBe(`${text}\n`)
  expect(asks ?? []).toEqual([])
})

/** Characters at which Node's and Bun's `readline` end a line, as svc's plugin in opencode and many programs read. */
const separators = 'rm a\u2028b\u2029c'
const stdinOf = (text: string) => {
  const order = httpOrder.parse(JSON.parse(text))
  return 'stdin' in order ? order.stdin : ''
}
it.each([
  ['any harness', jsonLine({ text: separators })],
  ['claude', userMessage(separators)],
  ["svc's plugin in opencode", stdinOf(stdinLine({ id: '1', allow: false, message: separators }))],
])('a text with separators of lines is one line to %s', async (_, written) => {
  const lines: string[] = []
  for await (const each of createInterface({ input: Readable.from([Buffer.from(written)]) })) lines.push(each)
  expect(lines).toHaveLength(1)
  expect(JSON.stringify(JSON.parse(lines[0] ?? ''))).toContain(separators)
})
