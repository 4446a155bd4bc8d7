import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunId } from '../../../shared/lib/ids.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { isLong } from '../../kit/forms.ts'
import { placeClaude, recording } from './claude-stand-in.ts'
import { specOf, spooled, testDevice, until, type TestDevice, type TestHost } from './host-client.ts'

let device: TestDevice
let bin: string
beforeAll(() => {
  device = testDevice()
  bin = placeClaude(device)
})
afterAll(() => device.remove())

interface Meanwhile {
  args?: string[]
  secrets?: Record<string, string>
  meanwhile?: (host: TestHost, runId: RunId) => Promise<void>
}

async function play(
  change: Partial<RunSpec>,
  player: Record<string, string> = {},
  { args = [], secrets = {}, meanwhile }: Meanwhile = {},
) {
  const host = await device.host(args)
  const spec = specOf(device, { harness: 'claude', command: null, ...change })
  const answers = join(device.workDir, `${spec.runId}.answers`)
  await host.connect()
  host.assign(spec, {
    env: {
      PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`,
      PLAYER_RECORDING: recording,
      PLAYER_ANSWERS: answers,
      ...player,
    },
  })
  await host.reply('prepared')
  host.start({ secrets })
  await meanwhile?.(host, spec.runId)
  const { report } = await host.reply('ended')
  await host.left()
  const answered = () =>
    readFileSync(answers, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { response: { response: unknown } })
  return { report, answered, ...spooled(device, spec.runId) }
}
const permissions = (change: Partial<RunSpec['permissions']>) => ({
  permissions: { allow: [], ask: [], deny: [], defaultMode: 'ask' as const, ...change },
})

describe('a structured harness', () => {
  test('session, calls, usage and result become events and totals; a secret in what it says is redacted, also one that looks like its protocol, and what goes back to it is not', async () => {
    const secrets = { ODD: '","type":"text","x', COMMAND: 'echo hello > hello.txt' }
    const { log, report, events, stats, answered } = await play(
      permissions({ defaultMode: 'full' }),
      { PLAYER_SAY: `I know ${secrets.ODD} and ${Buffer.from(secrets.ODD).toString('base64')}` },
      { secrets },
    )
    expect(report).toMatchObject({ exitReason: 'completed', exitCode: 0, toolCallCount: 1, forced: false })
    expect(report.sessionId).toBe('0daf4b85-4a04-4615-a93c-15ac4b358767')
    expect(report.usage).toMatchObject({ inputTokens: 200, outputTokens: 40 })
    expect(stats).toMatchObject({ toolCalls: 1, usage: report.usage, sessionId: report.sessionId })
    expect(events.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining([
        'started',
        'session',
        'text',
        'tool_call',
        'permission',
        'tool_result',
        'usage',
        'result',
        'ended',
      ]),
    )
    const said = events.filter(({ kind }) => kind === 'text' || kind === 'raw').map(({ data }) => data['text'])
    expect(said).toContain('I know [redacted:ODD] and [redacted:ODD]')
    expect(log.toString()).not.toContain('hello.txt &&')
    expect(JSON.stringify(answered().at(-1)!.response.response)).toContain('echo hello > hello.txt')
  })

  test('the agent is told once when it has made most of the calls that it may make in a sandbox', async () => {
    const { limits } = specOf(device, { command: null })
    const { events } = await play(
      { ...permissions({ defaultMode: 'full' }), limits: { ...limits, warnAtCalls: 2 } },
      { PLAYER_CALLS: '4' },
    )
    const told = events.filter(({ kind }) => kind === 'input').map(({ data }) => data['text'])
    expect(told).toEqual([expect.stringContaining(`You have made 2 of the ${limits.toolCalls} tool calls`)])
  })

  // claude takes an interrupt for a person's, and tells its model so when the session is gone on with.
  test.for([
    ['question_asked', 'SIGTERM'],
    ['interrupted', 'SIGINT'],
  ] as const)('a run whose call has its result already is stopped for %s by %s', async ([exitReason, signal]) => {
    const meanwhile = async (host: TestHost, runId: RunId) => {
      await until(() => spooled(device, runId).events.some(({ kind }) => kind === 'tool_result'), 'the result')
      host.send({ type: 'stop', exitReason, message: null })
    }
    const { report } = await play(permissions({ defaultMode: 'full' }), { PLAYER_MODE: 'thinking' }, { meanwhile })
    expect(report).toMatchObject({ exitReason, signal })
  })

  const byLists = [
    [{ allow: ['Bash'] }, 'allow', 'Bash', /allow/],
    [{ deny: ['Bash(echo hello:*)'], allow: ['Bash'] }, 'deny', 'Bash(echo hello:*)', /deny.*Bash\(echo hello/],
  ] as const
  // What a list allows is made like what a person allowed, below.
  test.for(isLong ? byLists : byLists.slice(1))(
    'its question is answered by the lists: %o gives %s',
    async ([lists, decision, rule, answer]) => {
      const { events, answered } = await play(
        permissions({
          ...lists,
          allow: [...('allow' in lists ? lists.allow : [])],
          deny: [...('deny' in lists ? lists.deny : [])],
        }),
      )
      const decided = events.filter(({ kind }) => kind === 'permission').map(({ data }) => data)
      expect(decided[0]).toEqual({
        toolCallId: 'toolu_02401bc531833d4ff4ae5730',
        name: 'Bash',
        decision,
        ...(rule !== undefined && { rule }),
      })
      expect(JSON.stringify(answered()[0]!.response.response)).toMatch(answer)
    },
  )

  describe('with a call that must be asked', () => {
    // Of the recorded call without its description; with one field it is its own canonical form.
    const input = { command: 'echo hello > hello.txt && cat hello.txt' }
    const inputDigest = createHash('sha256')
      .update(JSON.stringify(['Bash', input]))
      .digest('hex')

    test('ends approval_requested; what is asked is in its event, its totals and its ending', async () => {
      const { report, events, answered, stats, ending } = await play(permissions({}))
      expect(report).toMatchObject({ exitReason: 'approval_requested', exitCode: 0, forced: false })
      expect(report.message).toContain(`approval of Bash: ${input.command}`)
      expect(report.approvals).toEqual([
        {
          toolCallId: 'toolu_02401bc531833d4ff4ae5730',
          name: 'Bash',
          inputDigest,
          safeSummary: `Bash: ${input.command}`,
          toolArgs: { ...input, description: 'Run a command' },
          prompt: expect.stringMatching(/^tester asks to use Bash\.\n\necho hello > hello\.txt/),
        },
      ])
      expect(report.sessionId).toBe('0daf4b85-4a04-4615-a93c-15ac4b358767')
      expect(stats?.approvals).toEqual(report.approvals)
      expect(ending?.report).toEqual(report)
      const [decided] = events.filter(({ kind }) => kind === 'permission').map(({ data }) => data)
      expect(decided).toMatchObject({ decision: 'ask', ask: { inputDigest } })
      expect(events.at(-1)).toMatchObject({ kind: 'ended', data: { exitReason: 'approval_requested' } })
      expect(answered()[0]!.response.response).toMatchObject({
        continue: false,
        hookSpecificOutput: {
          permissionDecision: 'deny',
          permissionDecisionReason: expect.stringMatching(/is asked now/),
        },
      })
    })

    // In the short form `test/fault/ask.test.ts` ends such a one.
    if (isLong)
      test('interrupts a harness that goes on although it was told to stop', async () => {
        const { report } = await play(permissions({}), { PLAYER_MODE: 'deaf' })
        expect(report).toMatchObject({ exitReason: 'approval_requested', signal: 'SIGINT', forced: false })
        expect(report.approvals).toHaveLength(1)
      })

    // In the short form `call-judge.test.ts` shows this, as it does which calls an approval does not make.
    if (isLong)
      test('shows no secret, in whatever form, and asks for the call with its secret', async () => {
        const secrets = { GREETING: 'hello > hello.txt' }
        const { log, report } = await play(permissions({}), {}, { secrets })
        expect(report.approvals).toMatchObject([
          { inputDigest, safeSummary: 'Bash: echo [redacted:GREETING] && cat hello.txt' },
        ])
        for (const text of [log.toString(), JSON.stringify(report)]) expect(text).not.toContain(secrets.GREETING)
      })

    test('makes the call that a person allowed, by its digest, once', async () => {
      const approved = { name: 'Bash', inputDigest, approvalId: 'apr_0123456789abcdef' }
      const { report, events } = await play({ allowCalls: [approved], ...permissions({ ask: ['Bash'] }) })
      expect(report.exitReason).toBe('completed')
      expect(report).not.toHaveProperty('approvals')
      expect(events.filter(({ kind }) => kind === 'permission').map(({ data }) => data)).toEqual([
        {
          toolCallId: 'toolu_02401bc531833d4ff4ae5730',
          name: 'Bash',
          decision: 'allow',
          rule: 'approval:apr_0123456789abcdef',
        },
      ])
    })

    if (isLong)
      test.for([
        ['another digest', { inputDigest: '0'.repeat(64) }, {}, 'approval_requested'],
        ['another name', { name: 'Write' }, {}, 'approval_requested'],
        ['a deny list that names it', {}, { deny: ['Bash'] }, 'error'],
      ] as const)('does not make it with %s', async ([, change, lists, exitReason]) => {
        const approved = { name: 'Bash', inputDigest, approvalId: 'apr_0123456789abcdef', ...change }
        const deny = 'deny' in lists ? [...lists.deny] : []
        const { report, answered } = await play({ allowCalls: [approved], ...permissions({ deny }) })
        expect(report.exitReason).toBe(exitReason)
        expect(JSON.stringify(answered()[0])).toContain('"permissionDecision":"deny"')
        const denied = 'The one tool call that the agent tried was denied by its permissions: the rule Bash.'
        if (exitReason === 'error') expect(report.message).toContain(denied)
      })
  })

  test('more tool calls than the limit end it', async () => {
    const limits = { runMs: 600_000, noProgressMs: 600_000, firstEventMs: 600_000, toolCalls: 5, silentMs: 600_000 }
    const { report } = await play(
      { limits, ...permissions({ defaultMode: 'full' }) },
      { PLAYER_CALLS: '6', PLAYER_MODE: 'stay' },
    )
    expect(report.exitReason).toBe('budget_exceeded')
  })

  test('no first event in time is harness_start_failed', async () => {
    const limits = { runMs: 600_000, noProgressMs: 600_000, firstEventMs: 300, toolCalls: 5, silentMs: 600_000 }
    const { report } = await play({ limits }, { PLAYER_MODE: 'silent' })
    expect(report.exitReason).toBe('harness_start_failed')
  })

  test('a result counts though the program does not exit; it is ended and that is noted', async () => {
    const { report, events } = await play(
      permissions({ defaultMode: 'full' }),
      { PLAYER_MODE: 'stay' },
      { args: ['--exit-grace-ms', '300'] },
    )
    expect(report).toMatchObject({ exitReason: 'completed', forced: true })
    expect(events.at(-1)!.data).toMatchObject({ exitReason: 'completed', forced: true })
  })
})
