import { describe, expect, it } from 'vitest'
import { merged, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import { claudeDialogue } from './dialogue.ts'

const allow = { behavior: 'allow', rule: 'Bash' } as const
const deny = { behavior: 'deny', message: 'Not on the list.' } as const
const line = (value: unknown): Uint8Array => Buffer.from(`${JSON.stringify(value)}\n`)

interface Answer {
  type: string
  response: { subtype: string; request_id: string; response?: Record<string, unknown> }
}
const answers = (write: string | undefined) =>
  (write ?? '')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => (JSON.parse(text) as Answer).response)

const hook = (requestId: string, input: unknown = { command: 'ls' }, toolCallId = 'toolu_1') =>
  line({
    type: 'control_request',
    request_id: requestId,
    request: {
      subtype: 'hook_callback',
      callback_id: 'gate',
      input: { tool_name: 'Bash', tool_input: input, tool_use_id: toolCallId },
    },
  })
const permission = (requestId: string, input: unknown = { command: 'ls' }, toolCallId = 'toolu_1') =>
  line({
    type: 'control_request',
    request_id: requestId,
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input, tool_use_id: toolCallId },
  })
const hookDecision = (permissionDecision: string, permissionDecisionReason: unknown) => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason },
})

describe('a tool call', () => {
  it('is asked with its whole input, and waits for the answer', () => {
    const dialogue = claudeDialogue(specOf())
    const output = dialogue.push(hook('r1'))
    expect(output.asks).toEqual([{ askId: 'ask-1', toolCallId: 'toolu_1', name: 'Bash', input: { command: 'ls' } }])
    expect(output.write).toBeUndefined()
    expect(answers(dialogue.answer('ask-1', allow).write)).toEqual([
      { subtype: 'success', request_id: 'r1', response: hookDecision('allow', 'Bash') },
    ])
  })

  it('is denied with the reason the model gets to read', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(hook('r1'))
    expect(answers(dialogue.answer('ask-1', deny).write)).toEqual([
      { subtype: 'success', request_id: 'r1', response: hookDecision('deny', 'Not on the list.') },
    ])
  })

  it('that ends the run is denied in a way by which claude stops, also when it asks again', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(hook('r1'))
    expect(answers(dialogue.answer('ask-1', { ...deny, stop: true }).write)).toEqual([
      {
        subtype: 'success',
        request_id: 'r1',
        response: { continue: false, stopReason: 'Not on the list.', ...hookDecision('deny', 'Not on the list.') },
      },
    ])
    expect(answers(dialogue.push(permission('r2')).write)).toEqual([
      {
        subtype: 'success',
        request_id: 'r2',
        response: { behavior: 'deny', message: 'Not on the list.', interrupt: true },
      },
    ])
  })

  it.each([
    { decision: allow, expected: { behavior: 'allow', updatedInput: { command: 'ls' } } },
    { decision: deny, expected: { behavior: 'deny', message: 'Not on the list.' } },
  ])('that claude asks about again gets the same answer without another question: %o', ({ decision, expected }) => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(hook('r1'))
    dialogue.answer('ask-1', decision)
    const again = dialogue.push(permission('r2'))
    expect(again.asks).toBeUndefined()
    expect(answers(again.write)).toEqual([{ subtype: 'success', request_id: 'r2', response: expected }])
  })

  it('is a new question when its input has changed since it was allowed', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(hook('r1'))
    dialogue.answer('ask-1', allow)
    const again = dialogue.push(permission('r2', { command: 'rm -rf /' }))
    expect(again.write).toBeUndefined()
    expect(again.asks).toMatchObject([{ askId: 'ask-2', input: { command: 'rm -rf /' } }])
    expect(answers(dialogue.answer('ask-2', deny).write)).toMatchObject([{ response: { behavior: 'deny' } }])
  })

  it('that only claude asks about is a question too', () => {
    const dialogue = claudeDialogue(specOf())
    expect(dialogue.push(permission('r1')).asks).toHaveLength(1)
    expect(answers(dialogue.answer('ask-1', allow).write)).toEqual([
      { subtype: 'success', request_id: 'r1', response: { behavior: 'allow', updatedInput: { command: 'ls' } } },
    ])
  })

  it('is answered once, and not at all when claude has withdrawn it', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(hook('r1'))
    dialogue.answer('ask-1', allow)
    expect(dialogue.answer('ask-1', allow)).toEqual({ events: [] })
    dialogue.push(hook('r2'))
    expect(dialogue.push(line({ type: 'control_cancel_request', request_id: 'r2' })).events).toEqual([])
    expect(dialogue.answer('ask-2', allow).write).toBeUndefined()
    expect(dialogue.answer('never asked', allow).write).toBeUndefined()
  })
})

describe('in doubt', () => {
  it('two calls under one id are both denied: one answer would be taken for both', () => {
    const dialogue = claudeDialogue(specOf())
    const [first] = dialogue.push(hook('r1')).asks ?? []
    const second = dialogue.push(hook('r1', { command: 'rm -rf /' }, 'toolu_2'))
    expect(second.asks).toBeUndefined()
    expect(answers(second.write)).toMatchObject([
      { request_id: 'r1', response: { hookSpecificOutput: { permissionDecision: 'deny' } } },
    ])
    expect(dialogue.answer(first!.askId, allow).write).toBeUndefined()
  })

  it('an answer is good for its question only, not for a later one under the same id', () => {
    const dialogue = claudeDialogue(specOf())
    const [first] = dialogue.push(hook('r1')).asks ?? []
    dialogue.push(line({ type: 'control_cancel_request', request_id: 'r1' }))
    const [later] = dialogue.push(hook('r1', { command: 'rm -rf /' }, 'toolu_2')).asks ?? []
    expect(dialogue.answer(first!.askId, allow).write).toBeUndefined()
    expect(answers(dialogue.answer(later!.askId, deny).write)).toMatchObject([
      { response: { hookSpecificOutput: { permissionDecision: 'deny' } } },
    ])
  })

  it.each([
    ['a hook that cannot be read', { subtype: 'hook_callback', callback_id: 'gate', input: {} }],
    ['a hook without input', { subtype: 'hook_callback', callback_id: 'gate' }],
    [
      'a hook that is not ours',
      { subtype: 'hook_callback', callback_id: 'x', input: { tool_name: 'Bash', tool_input: {} } },
    ],
  ])('%s is denied, and never answered by an error', (_, request) => {
    const output = claudeDialogue(specOf()).push(line({ type: 'control_request', request_id: 'r1', request }))
    expect(output.asks).toBeUndefined()
    expect(answers(output.write)).toMatchObject([
      { subtype: 'success', response: { hookSpecificOutput: { permissionDecision: 'deny' } } },
    ])
  })

  it('a permission question that cannot be read is denied', () => {
    const request = { subtype: 'can_use_tool' }
    const output = claudeDialogue(specOf()).push(line({ type: 'control_request', request_id: 'r1', request }))
    expect(answers(output.write)).toMatchObject([{ subtype: 'success', response: { behavior: 'deny' } }])
  })

  it('another request gets an error, so that the turn does not hang', () => {
    const request = { subtype: 'elicitation' }
    const output = claudeDialogue(specOf()).push(line({ type: 'control_request', request_id: 'r1', request }))
    expect(answers(output.write)).toMatchObject([{ subtype: 'error', request_id: 'r1' }])
  })
})

it.each(['cbhook-ask'])('asks once for the one call of the recorded run %s', (name) => {
  const dialogue = claudeDialogue(specOf())
  const bytes = recording('claude', name)
  const hookEnd = bytes.indexOf('\n', bytes.indexOf('"hook_callback"')) + 1
  const first = dialogue.push(bytes.subarray(0, hookEnd))
  expect(first.asks).toMatchObject([{ name: 'Bash', toolCallId: 'toolu_02401bc531833d4ff4ae5730' }])
  const answered = dialogue.answer(first.asks?.[0]?.askId ?? '', allow)
  const rest = merged([dialogue.push(bytes.subarray(hookEnd)), dialogue.end()])
  expect(answers(answered.write)).toHaveLength(1)
  expect(rest.asks).toEqual([])
  expect(answers(rest.write)).toMatchObject([{ response: { behavior: 'allow' } }])
})
