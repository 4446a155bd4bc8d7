import { describe, expect, it } from 'vitest'
import { specOf } from '../../test/kit/harness-recordings.ts'
import { acpDialogue } from './acp/dialogue.ts'
import type { HarnessDialogue } from './adapter.ts'
import { claudeDialogue } from './claude/dialogue.ts'
import { codexDialogue } from './codex/dialogue.ts'
import { opencodeDialogue } from './opencode/dialogue.ts'
import { maxCallsAtOnce } from './parts/asked-calls.ts'

/** A harness that asks without an end, and waits for no answer: each question is answered, and a bounded number of them is open. */

interface Flooded {
  begin: readonly object[]
  /** The lines of one question, with ids of its own. */
  question: (at: number) => readonly object[]
  /** How a question is refused at once. */
  refused: RegExp
}
const said = (value: object) => ({ stdout: JSON.stringify(value) })
const harnesses: Record<string, Flooded & { dialogue: HarnessDialogue }> = {
  claude: {
    dialogue: claudeDialogue(specOf({})),
    begin: [],
    question: (at) => [
      {
        type: 'control_request',
        request_id: `r${at}`,
        request: {
          subtype: 'hook_callback',
          callback_id: 'gate',
          input: { tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: `t${at}` },
        },
      },
    ],
    refused: /"permissionDecision":"deny"/g,
  },
  codex: {
    dialogue: codexDialogue(specOf({ harness: 'codex' })),
    begin: [
      { id: 2, result: { thread: { id: 'main' } } },
      { id: 3, result: { turn: { id: 'turn' } } },
    ],
    question: (at) => [
      {
        id: at,
        method: 'item/commandExecution/requestApproval',
        params: { threadId: 'main', itemId: 'call', command: `ls ${at}` },
      },
    ],
    refused: /"decline"/g,
  },
  acp: {
    dialogue: acpDialogue(specOf({ harness: 'command', protocol: 'acp' })),
    begin: [
      { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } },
      { id: 2, result: { sessionId: 's1' } },
    ],
    question: (at) => [
      {
        id: at,
        method: 'session/request_permission',
        params: {
          sessionId: 's1',
          toolCall: { toolCallId: 't1', kind: 'execute', rawInput: { command: `ls ${at}` } },
          options: [
            { optionId: 'yes', kind: 'allow_once' },
            { optionId: 'no', kind: 'reject_once' },
          ],
        },
      },
    ],
    refused: /"optionId":"no"/g,
  },
  opencode: {
    dialogue: opencodeDialogue(specOf({ harness: 'opencode' })),
    begin: [
      said({ svc: 'ready', directory: '/w', servers: [] }),
      { answer: { id: 1, status: 200, body: { id: 'ses_1', directory: '/w' } } },
    ],
    question: (at) => {
      const of = { tool: 'bash', sessionID: 'ses_1', callID: `c${at}` }
      const state = { status: 'running', input: { command: 'ls' } }
      const part = { ...of, id: `p${at}`, messageID: 'm', type: 'tool', state }
      return [
        said({ svc: 'call', id: `${at}`, ...of, args: { command: 'ls' } }),
        { event: { type: 'message.part.updated', properties: { part } } },
      ]
    },
    refused: /\\"allow\\":false/g,
  },
}

describe.each(Object.entries(harnesses))('%s that asks without an end', (_, { dialogue, begin, question, refused }) => {
  it('has so many questions open, and the answer no to all others', () => {
    const push = (lines: readonly object[]) =>
      lines.map((line) => dialogue.push(Buffer.from(`${JSON.stringify(line)}\n`)))
    push(begin)
    const outputs = Array.from({ length: 2 * maxCallsAtOnce }, (_each, at) => push(question(at))).flat()
    const asks = outputs.flatMap((output) => output.asks ?? [])
    expect(asks).toHaveLength(maxCallsAtOnce)
    const written = outputs.map((output) => output.write ?? '').join('')
    expect(written.match(refused)).toHaveLength(maxCallsAtOnce)
    // Each of the open ones still gets its own answer.
    expect(dialogue.answer(asks[0]!.askId, { behavior: 'allow', rule: null }).write).toBeDefined()
  })
})
