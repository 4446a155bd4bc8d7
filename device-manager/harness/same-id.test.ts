import { describe, expect, it } from 'vitest'
import { specOf } from '../../test/kit/harness-recordings.ts'
import { acpDialogue } from './acp/dialogue.ts'
import type { HarnessDialogue } from './adapter.ts'
import { claudeDialogue } from './claude/dialogue.ts'
import { codexDialogue } from './codex/dialogue.ts'
import { opencodeDialogue } from './opencode/dialogue.ts'

// Harnesses that ask something else under the id of a question that waits for its answer: one answer would be taken for both.

/** What a harness asks under the id 7, and what else it may ask under it. */
interface Asking {
  dialogue: () => HarnessDialogue
  begin: readonly object[]
  question: readonly object[]
  others: Readonly<Record<string, object>>
  /** The lines that end the run. */
  end: object
  refused: RegExp
}

const said = (value: object) => ({ stdout: JSON.stringify(value) })
const command = { command: 'ls' }

const hook = (input: object) => ({
  type: 'control_request',
  request_id: '7',
  request: { subtype: 'hook_callback', callback_id: 'gate', input },
})
const permission = (more: object) => ({
  type: 'control_request',
  request_id: '7',
  request: { subtype: 'can_use_tool', ...more },
})
const codexAsks = (method: string, params: object) => ({ id: 7, method, params })
const acpAsks = (params: object, method = 'session/request_permission') => ({ jsonrpc: '2.0', id: 7, method, params })
const acpCall = (more: object) => ({
  sessionId: 's1',
  toolCall: { toolCallId: 't2', kind: 'execute', rawInput: command },
  options: [
    { optionId: 'yes', kind: 'allow_once' },
    { optionId: 'no', kind: 'reject_once' },
  ],
  ...more,
})
const opencodeCall = (more: object) =>
  said({ svc: 'call', id: '7', tool: 'bash', sessionID: 'ses_1', callID: 'c1', args: command, ...more })

const harnesses: Record<string, Asking> = {
  claude: {
    dialogue: () => claudeDialogue(specOf({})),
    begin: [],
    question: [hook({ tool_name: 'Bash', tool_input: command, tool_use_id: 't1' })],
    others: {
      'the same call': hook({ tool_name: 'Bash', tool_input: command, tool_use_id: 't1' }),
      'a hook that cannot be read': hook({}),
      'a permission that cannot be read': permission({}),
      'a permission for another call': permission({ tool_name: 'Write', input: {}, tool_use_id: 't2' }),
      'a permission for a call that was allowed before': permission({
        tool_name: 'Bash',
        input: command,
        tool_use_id: 't0',
      }),
      'a request that svc does not answer': permission({ subtype: 'elicitation' }),
    },
    end: { type: 'result', subtype: 'success', is_error: false, result: 'Done.' },
    refused: /"permissionDecision":"deny"|"behavior":"deny"|"subtype":"error"/,
  },
  codex: {
    dialogue: () => codexDialogue(specOf({ harness: 'codex' })),
    begin: [
      { id: 2, result: { thread: { id: 'main' } } },
      { id: 3, result: { turn: { id: 'turn' } } },
    ],
    question: [codexAsks('item/commandExecution/requestApproval', { threadId: 'main', itemId: 'c1', ...command })],
    others: {
      'the same call': codexAsks('item/commandExecution/requestApproval', {
        threadId: 'main',
        itemId: 'c1',
        ...command,
      }),
      'no command': codexAsks('item/commandExecution/requestApproval', { threadId: 'main', itemId: 'c2' }),
      'a command that cannot be read': codexAsks('item/commandExecution/requestApproval', { command: 1 }),
      'a patch that was never shown': codexAsks('item/fileChange/requestApproval', { threadId: 'main', itemId: 'c2' }),
      'words of a server': codexAsks('mcpServer/elicitation/request', { threadId: 'main', serverName: 'x' }),
      'a request that svc does not answer': codexAsks('item/tool/requestUserInput', {}),
    },
    end: { method: 'turn/completed', params: { threadId: 'main', turn: { id: 'turn', status: 'completed' } } },
    refused: /"decline"|"error"/,
  },
  acp: {
    dialogue: () => acpDialogue(specOf({ harness: 'command', protocol: 'acp' })),
    begin: [
      { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } },
      { id: 2, result: { sessionId: 's1' } },
    ],
    question: [acpAsks(acpCall({ toolCall: { toolCallId: 't1', kind: 'execute', rawInput: command } }))],
    others: {
      'the same call': acpAsks(acpCall({ toolCall: { toolCallId: 't1', kind: 'execute', rawInput: command } })),
      'a call without input': acpAsks(acpCall({ toolCall: { toolCallId: 't2', kind: 'execute' } })),
      'a call without options': acpAsks(acpCall({ options: [] })),
      'a call of another session': acpAsks(acpCall({ sessionId: 's2' })),
      'a call that cannot be read': acpAsks({}),
      'a request that svc does not answer': acpAsks({ path: '/etc/passwd' }, 'fs/read_text_file'),
    },
    end: { id: 3, result: { stopReason: 'end_turn' } },
    refused: /"optionId":"no"|"cancelled"|"error"/,
  },
  opencode: {
    dialogue: () => opencodeDialogue(specOf({ harness: 'opencode' })),
    begin: [
      said({ svc: 'ready', directory: '/w', servers: [] }),
      { answer: { id: 1, status: 200, body: { id: 'ses_1', directory: '/w' } } },
    ],
    question: [
      opencodeCall({}),
      {
        event: {
          type: 'message.part.updated',
          properties: {
            part: {
              id: 'p1',
              messageID: 'm',
              type: 'tool',
              tool: 'bash',
              sessionID: 'ses_1',
              callID: 'c1',
              state: { status: 'running', input: command },
            },
          },
        },
      },
    ],
    others: {
      'the same call': opencodeCall({}),
      'another call': opencodeCall({ callID: 'c2' }),
      'a patch that cannot be judged': opencodeCall({ callID: 'c2', tool: 'apply_patch', args: {} }),
      'a question to a person': opencodeCall({ callID: 'c2', tool: 'question' }),
    },
    end: { event: { type: 'session.idle', properties: { sessionID: 'ses_1' } } },
    refused: /\\"allow\\":false/,
  },
}

const pushing = (run: HarnessDialogue) => (lines: readonly object[]) =>
  lines.map((line) => run.push(Buffer.from(`${JSON.stringify(line)}\n`)))

describe.each(Object.entries(harnesses))('%s', (_, { dialogue, begin, question, others, end, refused }) => {
  const asked = () => {
    const run = dialogue()
    const push = pushing(run)
    push(begin)
    const [ask] = push(question).flatMap((output) => output.asks ?? [])
    return { run, push, ask: ask! }
  }

  it.each(Object.keys(others))('that asks under the id of an open question, about %s, is refused both', (name) => {
    const { run, push, ask } = asked()
    const outputs = push([others[name]!])
    expect(outputs.flatMap((output) => output.asks ?? [])).toEqual([])
    expect(outputs.map((output) => output.write ?? '').join('')).toMatch(refused)
    expect(run.answer(ask.askId, { behavior: 'allow', rule: null }).write).toBeUndefined()
  })

  it('that asks after its result under the id of an open question is refused both', () => {
    const { run, push, ask } = asked()
    push([end])
    expect(
      push(question)
        .map((output) => output.write ?? '')
        .join(''),
    ).toMatch(refused)
    expect(run.answer(ask.askId, { behavior: 'allow', rule: null }).write).toBeUndefined()
  })
})
