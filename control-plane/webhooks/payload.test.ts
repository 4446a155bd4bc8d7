import { expect, test } from 'vitest'
import { idFrom } from '../../shared/lib/ids.ts'
import { mostPayloadBytes, payloadOf } from './payload.ts'

const event = {
  id: 'evt_1',
  type: 'run.failed',
  workspaceId: idFrom<never>('w'),
  change: null,
  createdAt: 0,
}
const json = { form: 'json', publicUrl: 'https://svc.test' } as const
const slack = { ...json, form: 'slack' } as const

test.each([
  ['one long text', { prompt: 'ü'.repeat(100_000) }],
  ['many texts', Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`k${n}`, 'x'.repeat(3_000)]))],
  ['a long list', { items: Array.from({ length: 5_000 }, (_, n) => ({ n, text: 'y'.repeat(100) })) }],
  ['more keys than fit', Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`key${n}`, n]))],
])('is bounded: %s', (_, data) => {
  const text = payloadOf(event, { object: 'run', id: 'run_1', ...data }, json)
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(mostPayloadBytes)
  expect(JSON.parse(text)).toMatchObject({ truncated: true, data: { object: 'run', id: 'run_1' } })
})

test('does not cut a character in half', () => {
  const text = payloadOf(
    event,
    { object: 'run', id: 'run_1', prompt: `${'x'.repeat(3_999)}${'🚀'.repeat(20_000)}` },
    json,
  )
  expect(text).not.toMatch(/\\ud[89a-f]/i)
})

test.each([
  ['run', { agent: { handle: '@builder' }, task: { title: 'A & B' }, errorCode: 'timeout' }, 'run.failed'],
  ['approval', { prompt: 'Deploy?', result: { outcome: 'approve' } }, 'approval.resolved'],
  ['question', { prompt: 'Which\none?' }, 'question.closed'],
  ['task', { title: '<!here>', key: 'MAI-1' }, 'task.created'],
])('is one line for Slack: %s', (object, data, type) => {
  const { text } = JSON.parse(payloadOf({ ...event, type }, { object, id: 'id_1', ...data }, slack)) as { text: string }
  expect(text).not.toContain('\n')
  expect(text.match(/<[^>]*>/g)).toEqual([
    expect.stringMatching(/^<https:\/\/svc\.test\/api\/v1\/\w+s\/id_1\|[\w-]+>$/),
  ])
  expect(text).not.toContain('undefined')
})
