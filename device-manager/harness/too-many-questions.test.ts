import { describe, expect, it } from 'vitest'
import { specOf } from '../../test/kit/harness-recordings.ts'
import { acpDialogue } from './acp/dialogue.ts'
import type { HarnessDialogue } from './adapter.ts'
import { claudeDialogue } from './claude/dialogue.ts'
import { codexDialogue } from './codex/dialogue.ts'
import { opencodeDialogue } from './opencode/dialogue.ts'
import { maxCallsAtOnce } from './parts/asked-calls.ts'

// Harnesses that ask without an end, and wait for no answer, or that ask when nobody is there any more.

/** What harnesses ask, as if it were all that they do. */
interface Asking {
  begin: readonly object[]
  /** The lines of one question, with ids of its own. */
  question: (at: number) => readonly object[]
  /** How a question is refused at once. */
  refused: RegExp
  /** The run's end. */
  end: object
}
const said = (value: object) => ({ stdout: JSON.stringify(value) })
const harnesses: Record<string, Asking & { dialogue: () => HarnessDialogue }> = {
  claude: {
    dialogue: () => claudeDialogue(specOf({})),
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
    end: { type: 'result', subtype: 'success', is_error: false, result: 'Done.' },
  },
  codex: {
    dialogue: () => codexDialogue(specOf({ harness: 'codex' })),
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
    end: { method: 'turn/completed', params: { threadId: 'main', turn: { id: 'turn', status: 'completed' } } },
  },
  acp: {
    dialogue: () => acpDialogue(specOf({ harness: 'command', protocol: 'acp' })),
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
    refused: /"optionId":"no"|"cancelled"/g,
    end: { id: 3, result: { stopReason: 'end_turn' } },
  },
  opencode: {
    dialogue: () => opencodeDialogue(specOf({ harness: 'opencode' })),
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
    end: { event: { type: 'session.idle', properties: { sessionID: 'ses_1' } } },
  },
}

const pushing = (run: HarnessDialogue) => (lines: readonly object[]) =>
  lines.map((line) => run.push(Buffer.from(`${JSON.stringify(line)}\n`)))
const all = Object.entries(harnesses)

describe.each(all)('%s that asks without an end', (_, { dialogue, begin, question, refused }) => {
  it('has so many questions open, and the answer no to all others', () => {
    const run = dialogue()
    const push = pushing(run)
    push(begin)
    const outputs = Array.from({ length: 2 * maxCallsAtOnce }, (_each, at) => push(question(at))).flat()
    const asks = outputs.flatMap((output) => output.asks ?? [])
    expect(asks).toHaveLength(maxCallsAtOnce)
    const written = outputs.map((output) => output.write ?? '').join('')
    expect(written.match(refused)).toHaveLength(maxCallsAtOnce)
    // Each of the open ones still gets its own answer.
    expect(run.answer(asks[0]!.askId, { behavior: 'allow', rule: null }).write).toBeDefined()
  })
})

describe.each(all)('%s that asks after its result', (_, { dialogue, begin, question, refused, end }) => {
  it('is told no, and no person is asked', () => {
    const push = pushing(dialogue())
    push(begin)
    expect(push([end])).toMatchObject([{ finished: true, closeInput: true }])
    const outputs = push(question(7))
    expect(outputs.flatMap((output) => output.asks ?? [])).toEqual([])
    expect(outputs.map((output) => output.write ?? '').join('')).toMatch(new RegExp(refused.source))
  })
})
