import { describe, expect, it } from 'vitest'
import { merged, specOf } from '../../../test/kit/harness-recordings.ts'
import { streamRedactor, wholeValues } from '../../run-host/output/redaction.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { acpDialogue } from './dialogue.ts'

const line = (value: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...value })}\n`)

describe('a secret that comes in pieces', () => {
  const secret = 'correct-horse-battery-staple'
  const secrets = [{ name: 'VAULT', value: secret }]
  const chunk = (sessionUpdate: string, text: string) =>
    line({
      method: 'session/update',
      params: { sessionId: 's1', update: { sessionUpdate, content: { type: 'text', text } } },
    })
  function begun() {
    const redactStream = () => streamRedactor(new Redactor(secrets))
    const dialogue = acpDialogue(specOf({ harness: 'command', protocol: 'acp' }), {
      cwd: '/work',
      redactText: wholeValues(new Redactor(secrets)).text,
      redactStream,
    })
    dialogue.open()
    dialogue.push(line({ id: 1, result: { protocolVersion: 1, agentCapabilities: {} } }))
    dialogue.push(line({ id: 2, result: { sessionId: 's1' } }))
    return dialogue
  }
  function told(...lines: Uint8Array[]) {
    const dialogue = begun()
    const { events } = merged([...lines.map((each) => dialogue.push(each)), dialogue.end()])
    return events.map(({ kind, data }) => [kind, 'text' in data ? data.text : null])
  }

  it('is taken out of what the agent says and thinks', () => {
    for (const kind of ['agent_message_chunk', 'agent_thought_chunk']) {
      const pieces = `It is ${secret} — yes`.split('').map((letter) => chunk(kind, letter))
      const said = told(...pieces).map(([, text]) => text)
      expect(said.join('')).toBe('It is [redacted:VAULT] — yes')
    }
  })

  it('shows the end of a word after a silence, and no part that tells of a secret', () => {
    const dialogue = begun()
    const said = (text: string) =>
      merged([dialogue.push(chunk('agent_message_chunk', text)), dialogue.silent!()]).events
    const texts = (text: string) => said(text).map(({ data }) => ('text' in data ? data.text : null))
    expect(texts('Ask the doc')).toEqual(['Ask the do', 'c'])
    expect(texts('tor. It is corr')).toEqual(['tor. It is '])
    expect(texts('ect-horse-battery-staple.')).toEqual(['[redacted:VAULT].'])
  })

  it('holds back nothing for longer than until something else comes', () => {
    const said = chunk('agent_message_chunk', 'The correct-ho')
    const call = { sessionUpdate: 'tool_call', toolCallId: 't1', kind: 'execute', status: 'in_progress', rawInput: {} }
    const others: [Uint8Array, string][] = [
      [chunk('agent_thought_chunk', 'Hm.'), 'thinking'],
      [line({ method: 'session/update', params: { sessionId: 's1', update: call } }), 'tool_call'],
      [line({ id: 3, result: { stopReason: 'end_turn' } }), 'result'],
    ]
    for (const [other, kind] of others) {
      const [one, two, next] = told(said, other)
      expect([one, two, next?.[0]]).toEqual([['text', 'The '], ['text', 'correct-ho'], kind])
    }
    expect(told(said)).toEqual([
      ['text', 'The '],
      ['text', 'correct-ho'],
    ])
  })
})
