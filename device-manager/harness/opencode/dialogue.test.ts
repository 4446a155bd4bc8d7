import { describe, expect, it } from 'vitest'
import { merged, recording, recordingNames, specOf } from '../../../test/kit/harness-recordings.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { DialogueOutput, HarnessDialogue, ProcessExit } from '../adapter.ts'
import { isProvidersFault } from '../parts/failure.ts'
import { opencodeDialogue } from './dialogue.ts'

const left: ProcessExit = { exitCode: 0, signal: null, stoppedFor: null }
const line = (value: object) => Buffer.from(`${JSON.stringify(value)}\n`)
const pluginSays = (value: object) => line({ stdout: JSON.stringify(value) })
const eventOf = (type: string, properties: object) => line({ event: { type, properties } })
const newRun = (spec: Partial<RunSpec> = {}) => opencodeDialogue(specOf({ harness: 'opencode', ...spec }))

/** Reads a whole recording; calls are allowed. */
function replay(name: string, spec: Partial<RunSpec> = {}, exit = left) {
  const run = newRun(spec)
  const outputs: DialogueOutput[] = []
  const apply = (output: DialogueOutput) => {
    outputs.push(output)
    for (const { askId } of output.asks ?? []) apply(run.answer(askId, { behavior: 'allow', rule: null }))
  }
  // As it came: the answers lie between the lines.
  for (const each of recording('opencode', name)
    .toString()
    .split(/(?<=\n)/))
    apply(run.push(Buffer.from(each)))
  apply(run.end(exit))
  return { ...merged(outputs), outcome: run.outcome(exit) }
}

function feed(run: HarnessDialogue, ...lines: Uint8Array[]) {
  return merged(lines.map((each) => run.push(each)))
}
const main = 'ses_main'
const working = [
  pluginSays({ svc: 'ready', directory: '/w', servers: ['git'] }),
  line({ answer: { id: 1, status: 200, body: { id: main, directory: '/w' } } }),
  line({ answer: { id: 2, status: 204, body: null } }),
]
const call = (changes: object = {}) =>
  pluginSays({ svc: 'call', id: '1', tool: 'bash', sessionID: main, callID: 'c1', args: { command: 'ls' }, ...changes })
const part = (status: string, changes: object = {}) =>
  eventOf('message.part.updated', {
    part: {
      id: 'p1',
      type: 'tool',
      sessionID: main,
      messageID: 'm1',
      tool: 'bash',
      callID: 'c1',
      state: { status, input: { command: 'ls' }, output: 'out' },
      ...changes,
    },
  })
const turn = { svc: 'turn', id: '9', sessionID: main, agent: 'build', model: 'a/b', isRetry: false, isPublic: false }
const idle = eventOf('session.idle', { sessionID: main })
const stdinOf = (output: { write: string }) => [...output.write.matchAll(/"stdin":"(.*)"}/g)].map(([, text]) => text)

describe('a recorded run ends as what happened', () => {
  it.each([
    ['success', 'completed', null],
    ['denied', 'completed', null],
    ['err-401', 'harness_start_failed', /auth login/],
    ['err-429', 'rate_limited', /429/],
    ['err-429-long', 'rate_limited', /60 min/],
    ['err-503', 'error', /503/],
    ['err-ctx', 'error', /context/],
    ['err-model', 'error', /model not found/i],
    ['signed-out', 'harness_start_failed', /auth login/],
    ['interrupted', 'error', /from outside/],
  ] as const)('%s', (name, exitReason, message) => {
    const { outcome } = replay(name)
    expect(outcome).toMatchObject({ exitReason, resumeRefused: false })
    if (message === null) expect(outcome.message).toBeNull()
    else expect(outcome.message).toMatch(message)
  })

  it('limited for long, with the time at which the limit ends', () => {
    expect(replay('err-429-long').outcome.limitResetsAt).toBe(1_790_003_600_000)
    expect(replay('err-429').outcome).not.toHaveProperty('limitResetsAt')
  })

  it('as a failure of its provider only where it was one', () => {
    expect(replay('err-503').outcome.failure).toBe('provider')
    expect(replay('err-model').outcome.failure).toBe('unknown_model')
    for (const name of ['err-401', 'err-429', 'err-429-long', 'err-ctx', 'err-model', 'interrupted'])
      expect(isProvidersFault(replay(name).outcome.failure)).toBe(false)
  })

  it('killed: whatever the status, it did not finish', () => {
    const { outcome } = replay('killed', {}, { exitCode: null, signal: 'SIGKILL', stoppedFor: null })
    expect(outcome).toMatchObject({ exitReason: 'error', message: expect.stringContaining('SIGKILL') })
  })

  it('with a context that stays full, without a session to go on with', () => {
    expect(replay('err-ctx').outcome.sessionId).toBeNull()
  })

  it('with a session that is gone, as refused to resume', () => {
    const { outcome } = replay('res-bad', { resumeSessionId: 'ses_0000000000000000000000000A' })
    expect(outcome).toMatchObject({ exitReason: 'harness_start_failed', resumeRefused: true, sessionId: null })
  })

  it('at the limit of turns: the model is not asked again', () => {
    const { outcome, write } = replay('turns', { maxTurns: 2 })
    expect(outcome.exitReason).toBe('budget_exceeded')
    expect(write).toContain('/abort')
  })

  it('asks about the calls of a subagent of an earlier run that a call goes on with', () => {
    const run = newRun()
    feed(run, ...working)
    const old = 'ses_earlier'
    const theirs = [call({ id: '2', sessionID: old }), part('running', { id: 'p2', sessionID: old })]
    expect(feed(run, ...theirs).asks).toEqual([])
    const state = { status: 'running', input: {}, metadata: { sessionId: old } }
    feed(run, call({ tool: 'task', args: {} }), part('running', { tool: 'task', state }))
    const { asks, events } = feed(run, part('running', { id: 'p2', sessionID: old }))
    expect(asks).toMatchObject([{ name: 'Bash', toolCallId: `${old}/c1` }])
    expect(events).toMatchObject([{ kind: 'tool_call', data: { parentToolCallId: 'c1' } }])
  })

  it('counts a subagent, and names an MCP tool by its server', () => {
    const { events, asks } = replay('tools')
    expect(asks.map(({ name }) => name).toSorted()).toEqual(['Bash', 'Task', 'mcp__my_srv__say'])
    const usage = events.filter(({ kind }) => kind === 'usage').at(-1)
    expect(usage?.data).toMatchObject({ inputTokens: 500 - 100 })
  })
})

describe('a session that is not of this run', () => {
  const other = { sessionID: 'ses_other' }
  const step = { id: 's1', type: 'step-finish', messageID: 'm1', reason: 'stop', cost: 1, tokens: { input: 5 } }
  const error = { name: 'ContextOverflowError', data: { message: 'Full.' } }
  const words = { id: 'w1', type: 'text', messageID: 'm1', text: 'Mine.', time: { end: 1 } }
  const message = (sessionID: string) =>
    eventOf('message.updated', { info: { id: 'm1', sessionID, role: 'assistant', agent: 'build' } })

  it('is kept raw, and is neither words, usage, error nor end of the run', () => {
    const run = newRun()
    const foreign = [
      eventOf('message.part.updated', { part: { ...words, ...other } }),
      eventOf('message.part.updated', { part: { ...step, ...other } }),
      part('completed', other),
      eventOf('session.status', { ...other, status: { type: 'retry', attempt: 1, message: 'Later.' } }),
      ...Array.from({ length: 3 }, () => eventOf('session.error', { ...other, error })),
    ]
    const output = feed(run, ...working, message('ses_other'), ...foreign, eventOf('session.idle', other))
    expect(output.events.map((event) => event.kind)).toEqual(['session', ...foreign.map(() => 'raw')])
    expect(output.finished).toBe(false)
    const own = [
      { ...words, id: 'w2', sessionID: main },
      { ...step, id: 's2', sessionID: main },
    ]
    const end = feed(run, ...own.map((each) => eventOf('message.part.updated', { part: each })), idle)
    expect(end.events).toMatchObject([
      { kind: 'text', data: { text: 'Mine.' } },
      { kind: 'usage', data: { inputTokens: 5 } },
      { kind: 'result', data: { text: 'Mine.', isError: false } },
    ])
    expect(run.outcome(left)).toMatchObject({ exitReason: 'completed', sessionId: main })
  })

  it.each(recordingNames('opencode'))('is not in what opencode itself wrote: "%s"', (name) => {
    const raw = replay(name).events.flatMap((event) => (event.kind === 'raw' ? [event.data.text ?? ''] : []))
    expect(raw.filter((text) => text.startsWith('{"event":'))).toEqual([])
  })
})

describe('a call', () => {
  it('is asked when its part has come, and answered on standard input', () => {
    const run = newRun()
    feed(run, ...working)
    expect(feed(run, call()).asks).toEqual([])
    const asked = feed(run, part('running'))
    expect(asked.asks).toMatchObject([{ toolCallId: 'c1', name: 'Bash', input: { command: 'ls' } }])
    const answered = run.answer(asked.asks[0]!.askId, { behavior: 'allow', rule: null })
    expect(JSON.parse(JSON.parse(answered.write!).stdin)).toEqual({ id: '1', allow: true })
    expect(run.answer(asked.asks[0]!.askId, { behavior: 'allow', rule: null }).write).toBeUndefined()
  })

  it('is asked as well when its part came first', () => {
    const run = newRun()
    expect(feed(run, ...working, part('running'), call()).asks).toHaveLength(1)
  })

  it('of a session that is not of this run is never answered', () => {
    const run = newRun()
    const strange = { sessionID: 'ses_other' }
    const output = feed(run, ...working, call(strange), part('running', strange))
    expect([output.asks, stdinOf(output)]).toEqual([[], []])
  })

  it('may have the id of one that is over, not of one that waits', () => {
    const run = newRun()
    const waits = feed(run, ...working, call(), call({ id: '2' }), part('running'))
    expect(waits.asks).toHaveLength(1)
    expect(waits.write).toContain(String.raw`\"id\":\"2\",\"allow\":false`)
    run.answer(waits.asks[0]!.askId, { behavior: 'allow', rule: null })
    feed(run, part('completed'))
    expect(feed(run, call({ id: '3' }), part('running', { id: 'p2' })).asks).toHaveLength(1)
  })

  it.each([
    ['never asked', []],
    ['asked and not allowed', [call()]],
  ])('that ran though it was %s stops the run', (_, before) => {
    const run = newRun()
    const output = feed(run, ...working, ...before, part('completed'))
    expect(output.write).toContain(`/session/${main}/abort`)
    expect(output.finished).toBe(true)
    feed(run, idle)
    expect(run.outcome(left)).toMatchObject({ exitReason: 'error', message: expect.stringContaining('without asking') })
  })

  describe('that was allowed', () => {
    const yes = { behavior: 'allow', rule: null } as const
    const no = { behavior: 'deny', message: 'No.' } as const
    const other = (status: string) =>
      part(status, { state: { status, input: { command: 'rm -r .' }, error: 'Exit 1' } })
    const allowed = (run: HarnessDialogue, ...lines: Uint8Array[]) => {
      const { asks } = feed(run, ...working, ...lines)
      for (const { askId } of asks) run.answer(askId, yes)
      return asks
    }

    it.each(['completed', 'error'])('and ended %s stops the run when another input was run', (status) => {
      const run = newRun()
      allowed(run, call(), part('running'))
      expect(feed(run, other(status), idle).write).toContain(`/session/${main}/abort`)
      expect(run.outcome(left)).toMatchObject({
        exitReason: 'error',
        message: expect.stringContaining('ran bash, but not as it was allowed'),
      })
    })

    it('stops the run when another tool was run', () => {
      const run = newRun()
      allowed(run, call(), part('running'))
      expect(feed(run, part('completed', { tool: 'write' })).write).toContain('/abort')
    })

    it('goes on when it was run as it was allowed, whatever the order of its fields', () => {
      const run = newRun()
      allowed(run, call({ args: { command: 'ls', timeout: 1 } }), part('running'))
      const state = { status: 'completed', input: { timeout: 1, command: 'ls' }, output: '' }
      expect(feed(run, part('completed', { state })).write).not.toContain('/abort')
    })

    it('is judged as both where the session shows another input than a plugin made of it', () => {
      const run = newRun()
      const asks = allowed(run, call({ args: { command: 'ls -a' } }), part('running'))
      expect(asks.map(({ input }) => input)).toEqual([{ command: 'ls -a' }, { command: 'ls' }])
      expect(feed(run, part('completed')).write).not.toContain('/abort')
      const refused = newRun()
      const [first, second] = feed(refused, ...working, part('running'), call({ args: { command: 'ls -a' } })).asks
      refused.answer(first!.askId, yes)
      expect(refused.answer(second!.askId, no).write).toContain(String.raw`\"allow\":false`)
    })

    it('is no longer when its answer is over: the next of its id is asked anew', () => {
      const run = newRun()
      allowed(run, call(), part('running'))
      feed(run, part('completed'))
      expect(feed(run, part('completed', { id: 'p2' })).write).toContain('/abort')
    })
  })

  it('whose question has the id of an open one is refused with it: one answer would be taken for both', () => {
    const run = newRun()
    const [ask] = feed(run, ...working, call(), part('running')).asks
    const twin = feed(run, call({ callID: 'c2', args: { command: 'rm' } }))
    expect(stdinOf(twin)).toEqual([expect.stringContaining(String.raw`\"id\":\"1\",\"allow\":false`)])
    expect(run.answer(ask!.askId, { behavior: 'allow', rule: null }).write).toBeUndefined()
    expect(feed(run, part('completed')).write).toContain('/abort')
  })

  it('for a person at a terminal is refused', () => {
    const output = feed(newRun(), ...working, call({ tool: 'question' }))
    expect(output.write).toContain('Nobody sits in front')
  })

  it('that must be asked ends the work before the model is asked again', () => {
    const run = newRun()
    const [ask] = feed(run, ...working, call(), part('running')).asks
    run.answer(ask!.askId, { behavior: 'deny', message: 'A person is asked.', stop: true })
    const turn = {
      svc: 'turn',
      id: '9',
      sessionID: main,
      agent: 'build',
      model: 'a/b',
      isRetry: false,
      isPublic: false,
    }
    const output = feed(run, pluginSays(turn))
    expect(output.write).toContain('/abort')
    expect(stdinOf(output)).toEqual([])
  })
})

it('takes ids that are no whole text', () => {
  const half = 'ses_\ud800'
  const run = newRun()
  const opened = line({ answer: { id: 1, status: 200, body: { id: half, directory: '/w' } } })
  expect(feed(run, working[0]!, opened).write).toContain('/session/ses_%EF%BF%BD/prompt_async')
  const asked = eventOf('permission.asked', { id: half, sessionID: half })
  expect(feed(run, asked).write).toContain('/permission/ses_%EF%BF%BD/reply')
})

describe("opencode's own question", () => {
  const asked = eventOf('permission.asked', { id: 'per_1', sessionID: main, tool: { callID: 'c1' } })

  it('is answered with yes, once, after svc said yes', () => {
    const run = newRun()
    const [ask] = feed(run, ...working, call(), part('running')).asks
    run.answer(ask!.askId, { behavior: 'allow', rule: null })
    expect(JSON.parse(feed(run, asked).write)).toMatchObject({
      path: '/permission/per_1/reply',
      body: { reply: 'once' },
    })
  })

  it.each([
    ['nobody asked svc', []],
    ['svc has not answered', [call(), part('running')]],
  ])('is answered with no where %s', (_, before) => {
    const run = newRun()
    feed(run, ...working, ...before)
    expect(JSON.parse(feed(run, asked).write)).toMatchObject({ body: { reply: 'reject' } })
  })
})

describe('in doubt', () => {
  it('no prompt is sent before the plugin is in place', () => {
    expect(feed(newRun(), line({ listening: true }), line({ stdout: 'hello' })).write).toBe('')
  })

  it('a plugin that cannot be put in place ends the run', () => {
    const run = newRun()
    const output = feed(run, pluginSays({ svc: 'failed', message: 'Error: no such thing' }))
    expect(output).toMatchObject({ write: '', finished: true, closeInput: true })
    expect(run.outcome(left)).toMatchObject({
      exitReason: 'harness_start_failed',
      message: expect.stringContaining('plugin'),
    })
  })

  it('a session of another folder is not gone on with', () => {
    const run = newRun({ resumeSessionId: main })
    const sessions = [
      { id: main, directory: '/elsewhere' },
      { id: 'ses_2', directory: '/w' },
    ]
    const output = feed(run, working[0]!, line({ answer: { id: 1, status: 200, body: sessions } }))
    expect([output.write.includes('prompt'), output.closeInput]).toEqual([false, true])
    expect(run.outcome(left)).toMatchObject({ resumeRefused: true })
  })

  it('events that end are no result', () => {
    const run = newRun()
    expect(feed(run, ...working, line({ lost: 'its events ended' }))).toMatchObject({
      finished: true,
      closeInput: true,
    })
    expect(run.outcome(left)).toMatchObject({ message: expect.stringContaining('its events ended') })
  })

  it('a turn without an answer of the model is none', () => {
    const run = newRun()
    feed(run, ...working, idle)
    expect(run.outcome(left)).toMatchObject({
      exitReason: 'error',
      message: expect.stringContaining('without an answer'),
    })
  })

  it('a text of a person that the model has not heard keeps the run going', () => {
    const run = newRun()
    feed(run, ...working)
    expect(run.input('Wait!').write).toContain('Wait!')
    expect(feed(run, idle)).toMatchObject({ finished: false, closeInput: false })
    expect(feed(run, pluginSays(turn), idle)).toMatchObject({ finished: true, closeInput: true })
  })

  it('a text of a person that opencode does not take is told, and ends nothing but the wait for it', () => {
    const run = newRun()
    feed(run, ...working)
    run.input('Wait!')
    const refused = line({ answer: { id: 10, status: 400, body: null } })
    expect(feed(run, refused)).toMatchObject({ finished: false, events: [{ data: { class: 'input_too_late' } }] })
    expect(feed(run, idle)).toMatchObject({ finished: true })
    const late = newRun()
    feed(late, ...working)
    late.input('Wait!')
    expect(feed(late, idle, refused)).toMatchObject({ finished: true, closeInput: true })
  })

  it('a text of a person that comes too late is told', () => {
    const run = newRun()
    feed(run, ...working, idle)
    expect(run.input('Wait!').events).toMatchObject([{ kind: 'error', data: { class: 'input_too_late' } }])
  })
})
