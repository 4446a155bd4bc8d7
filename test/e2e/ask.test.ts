import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AskedCall } from '../../shared/runs/asked-call.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { callDigest } from '../../device-manager/run-host/permission/call-digest.ts'
import { ClaudeDevice } from '../kit/claude-device.ts'
import { isLong } from '../kit/forms.ts'
import type { StubLlm } from '../kit/stub-llm.ts'

// A tool call that must be asked, with the real daemon, its run hosts and the real Claude Code.

let machine: ClaudeDevice
let stub: StubLlm
let missing: string | null = null

beforeAll(async () => {
  const started = await ClaudeDevice.start()
  if ('missing' in started) missing = started.missing
  else {
    machine = started
    stub = started.stub
  }
})
beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})
afterAll(() => machine?.stop())

const permissions: RunSpec['permissions'] = { allow: [], ask: ['Bash'], deny: [], defaultMode: 'full' }
const play = (change: Partial<RunSpec>) => machine.play({ permissions, ...change })
const shell = (command: string) => ({ kind: 'shell', command }) as const
const made = (name: string) => existsSync(join(machine.folder, name))

const deploy = shell('echo done >> deployed.txt')

// In the short form `harness-all.test.ts` lets a person be asked and answer, through the whole system.
if (isLong)
  test('a call is asked, the run woken by its answer makes it once, and is asked about all other calls of a turn together', async () => {
    await stub.script({ run: { steps: [{ text: 'I deploy.', tool: deploy }, { text: 'Hm.' }] } })
    const first = await play({ prompt: 'Deploy it.' })
    expect(first.report).toMatchObject({ exitReason: 'approval_requested', exitCode: 0, forced: false })
    expect(first.told).toMatchObject([
      {
        name: 'Bash',
        inputDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
        safeSummary: 'Bash: echo done >> deployed.txt',
        toolArgs: { command: 'echo done >> deployed.txt' },
        prompt: expect.stringContaining('asks to use Bash (rule: Bash)'),
      },
    ])
    expect(first.report.approvals).toEqual(first.told)
    expect(made('deployed.txt')).toBe(false)
    // It stopped where it was: the model was not asked once more.
    expect(await stub.requests()).toHaveLength(1)

    const [{ inputDigest }] = first.told as [AskedCall]
    const second = await asksTogether({ resumeSessionId: first.report.sessionId }, inputDigest)
    expect(second.report.sessionId).toBe(first.report.sessionId)
    // The model was told what it had asked before, and what became of it.
    const [request] = await stub.requests()
    const messages = JSON.stringify(request?.body['messages'])
    for (const text of ['Deploy it.', 'I deploy.', 'is asked now', 'was approved']) expect(messages).toContain(text)
  })
else
  test('a run makes the call that was approved once, and is asked about all other calls of a turn together', async () => {
    await asksTogether({}, callDigest('Bash', { command: deploy.command }))
  })

/** A run with an approval of that call makes it, and then has a turn with the same one and others. */
async function asksTogether(change: Partial<RunSpec>, inputDigest: string) {
  const allowCalls = [{ name: 'Bash', inputDigest, approvalId: 'apr_1' }]
  // The second call of the turn is allowed, and waits with those that are asked.
  const tools = [
    deploy,
    { kind: 'write', path: 'beside.txt', content: 'x' } as const,
    shell('echo done > everything.txt'),
  ]
  await stub.script({
    run: { steps: [{ text: 'Allowed, then.', tool: deploy }, { text: 'And now all of it.', tools }, { text: 'Hm.' }] },
  })
  const ended = await play({ prompt: 'Your call of Bash was approved. Make it again.', allowCalls, ...change })
  expect(ended.report.exitReason).toBe('approval_requested')
  // An approval is good for one call.
  expect(readFileSync(join(machine.folder, 'deployed.txt'), 'utf8')).toBe('done\n')
  expect(ended.told.map(({ safeSummary }) => safeSummary)).toEqual([
    'Bash: echo done >> deployed.txt',
    'Bash: echo done > everything.txt',
  ])
  const [sameCall, otherCall] = ended.told.map((call) => call.inputDigest)
  expect(sameCall).toBe(inputDigest)
  expect(otherCall).not.toBe(sameCall)
  for (const name of ['beside.txt', 'everything.txt']) expect(made(name), name).toBe(false)
  return ended
}
