import { describe, expect, it } from 'vitest'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { merged, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { isProvidersFault } from '../parts/failure.ts'
import { codexDialogue } from './dialogue.ts'
import { codexLaunch } from './launch.ts'
import { scriptOf } from './shell-words.ts'

const left: ProcessExit = { exitCode: 0, signal: null, stoppedFor: null }
const full: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'full' }
const line = (value: unknown) => Buffer.from(`${JSON.stringify(value)}\n`)

function play(name: string, changes: Partial<RunSpec> = {}, exit: ProcessExit = left) {
  const dialogue = codexDialogue(specOf({ harness: 'codex', ...changes }))
  const said = recording('codex', name)
    .toString()
    .split(/(?<=\n)/)
  // What the recorded run was allowed.
  const pushed = said.flatMap((text) => {
    const output = dialogue.push(Buffer.from(text))
    return [
      output,
      ...(output.asks ?? []).map(({ askId }) => dialogue.answer(askId, { behavior: 'allow', rule: null })),
    ]
  })
  const output = merged([dialogue.open(), ...pushed, dialogue.end(exit)])
  return { ...output, outcome: dialogue.outcome(exit) }
}

const lines = (write = '') =>
  write.split('\n').flatMap((text) => (text === '' ? [] : [JSON.parse(text) as Record<string, unknown>]))
const knots = { name: 'knots', description: 'Ties.', body: 'Loop.', folder: '/skills/knots', hasFiles: false }

describe('MCP servers', () => {
  const mcpServers: McpServers = {
    files: { type: 'stdio', command: 'files', args: ['--x'], env: { A: 'b' } },
    web: { type: 'http', url: 'https://x.test', headers: { 'X-Key': 'k' } },
  }
  const asked = { default_tools_approval_mode: 'prompt' }
  const files = { ...asked, command: 'files', args: ['--x'], env: { A: 'b' } }
  const web = { ...asked, url: 'https://x.test', http_headers: { 'X-Key': 'k' } }
  function opened(changes: Partial<RunSpec>, config: object | null, servers = mcpServers) {
    const dialogue = codexDialogue(specOf({ harness: 'codex', ...changes }), { mcpServers: servers })
    expect(lines(dialogue.open().write).at(-1)).toMatchObject({ id: 5, method: 'config/read' })
    return dialogue.push(line({ id: 5, result: { config } }))
  }

  it('of the workspace are given to new and resumed threads, and have all their tools asked', () => {
    for (const resumeSessionId of [null, 's1']) {
      const { write, events } = opened(
        { resumeSessionId, permissions: full },
        { mcp_servers: { own: { command: 'own' } } },
      )
      expect(lines(write)).toMatchObject([
        { id: 2, params: { config: { mcp_servers: { files, web }, mcp_optional_startup_grace_ms: 30_000 } } },
      ])
      expect(write).not.toContain('own')
      expect(events).toEqual([])
    }
  })

  it('of the person have all their tools asked where lists have a say', () => {
    const own = { command: 'own', tools: { say: { approval_mode: 'approve' } } }
    const { write } = opened({}, { mcp_servers: { own, 'other one': { url: 'https://x.test', tools: null } } }, {})
    const tools = { say: { approval_mode: 'prompt' } }
    expect((lines(write)[0] as { params: object }).params).toMatchObject({
      config: { mcp_servers: { own: { ...asked, tools }, 'other one': asked } },
    })
    expect(write).not.toContain('x.test')
  })

  it('of the workspace give way to those of the person with the same name, which is said', () => {
    const { write, events } = opened({ permissions: full }, { mcp_servers: { files: { command: 'theirs' } } })
    expect(lines(write)).toMatchObject([{ params: { config: { mcp_servers: { web } } } }])
    expect(write).not.toContain('"files"')
    expect(events).toMatchObject([
      { kind: 'error', data: { class: 'mcp_server_left_out', message: expect.stringContaining('server files: ') } },
    ])
  })

  it('cost nothing where there are none, and no run starts on what is not understood', () => {
    const free = codexDialogue(specOf({ harness: 'codex', permissions: full })).open()
    expect(lines(free.write).at(-1)).toMatchObject({ id: 2, method: 'thread/start' })
    expect(free.write).not.toContain('mcp_servers')
    expect(lines(opened({}, {}, {}).write)).toMatchObject([{ id: 2, method: 'thread/start' }])
    expect(opened({}, null)).toMatchObject({ finished: true, events: [{ data: { class: 'refused' } }] })
  })
})

describe('how a recorded run ended', () => {
  const session = expect.stringMatching(/^01a1fb6c-/) as unknown as string
  it.each<[string, Partial<HarnessOutcome>]>([
    ['ask-untrusted', { exitReason: 'completed', message: null, sessionId: session }],
    ['ask-decline', { exitReason: 'completed' }],
    ['ask-cancel', { exitReason: 'error', message: 'codex was interrupted from outside.', sessionId: session }],
    ['err-401', { exitReason: 'harness_start_failed', message: expect.stringContaining('codex login') as string }],
    ['err-429', { exitReason: 'rate_limited', sessionId: session }],
    ['err-usage', { exitReason: 'rate_limited', message: expect.stringContaining('usage limit') as string }],
    ['err-quota', { exitReason: 'rate_limited' }],
    [
      'err-503',
      { exitReason: 'error', message: expect.stringContaining('at capacity') as string, failure: 'provider' },
    ],
    ['err-529', { exitReason: 'error', failure: 'provider' }],
    ['err-ctx', { exitReason: 'error', sessionId: null }],
  ])('%s', (name, outcome) => {
    expect(play(name).outcome).toMatchObject(outcome)
  })

  it('with how much the account has used of its windows, as codex told it last', () => {
    const used = (...limits: object[]) => {
      const dialogue = codexDialogue(specOf({ harness: 'codex' }))
      for (const rateLimits of limits)
        dialogue.push(line({ method: 'account/rateLimits/updated', params: { rateLimits } }))
      return dialogue.outcome(left).limitsUsed
    }
    const resetsAt = 1_900_000_000
    const primary = { usedPercent: 12.9, windowDurationMins: 300, resetsAt }
    const secondary = { usedPercent: 3, windowDurationMins: 10_080, resetsAt }
    const both = { primary, secondary: null }
    const told = { windowMinutes: 300, models: null, usedPercent: 12, resetsAt: resetsAt * 1_000 }
    expect(used(both)).toEqual([told])
    // A later note leaves one out.
    expect(used(both, { primary: null, secondary })).toEqual([told, { ...told, windowMinutes: 10_080, usedPercent: 3 }])
    for (const odd of [{ usedPercent: -1 }, { usedPercent: 1e9 }, { resetsAt: null }, { windowDurationMins: null }])
      expect(used({ primary: { ...primary, ...odd }, secondary: null })).toBeUndefined()
  })

  it('by a failure that is not its provider’s', () => {
    for (const name of ['err-429', 'err-401', 'err-ctx', 'ask-cancel', 'kill-sigterm'])
      expect(isProvidersFault(play(name).outcome.failure)).toBe(false)
  })

  it('by being killed: no success, whatever the status', () => {
    expect(play('kill-sigterm').outcome).toMatchObject({
      exitReason: 'error',
      message: 'codex exited with status 0 in the middle of its turn.',
    })
    const silent = codexDialogue(specOf({ harness: 'codex' }))
    expect(silent.outcome({ ...left, exitCode: 1 })).toMatchObject({
      exitReason: 'harness_start_failed',
      sessionId: null,
    })
  })

  it('by the run host, which knows why', () => {
    const exit = { ...left, stoppedFor: 'interrupted' } as const
    expect(play('err-429', {}, exit).outcome).toMatchObject({ exitReason: 'interrupted', message: null })
  })

  it('because its session is gone', () => {
    const resumeSessionId = '01a1fb69-38c0-7651-abd0-d29a03519b99'
    expect(play('res-bad', { resumeSessionId }).outcome).toMatchObject({ resumeRefused: true, sessionId: null })
    // Without a session to resume it is any other refusal.
    expect(play('res-bad').outcome).toMatchObject({
      exitReason: 'harness_start_failed',
      resumeRefused: false,
      message: expect.stringContaining('no rollout found'),
    })
  })
})

describe('a call that was not asked', () => {
  it('stops the run where the lists have a say', () => {
    const { write, outcome } = play('success')
    expect(write).toContain('"method":"turn/interrupt"')
    expect(outcome).toMatchObject({ exitReason: 'error', message: expect.stringContaining('without asking first') })
  })

  it('is nothing where they have none', () => {
    const { write, outcome } = play('success', { permissions: full })
    expect(write).not.toContain('turn/interrupt')
    expect(outcome).toMatchObject({ exitReason: 'completed' })
  })
})

describe('a call that was asked', () => {
  const yes = { behavior: 'allow', rule: null } as const
  const no = { behavior: 'deny', message: 'No.' } as const
  const ls = { id: 'call', type: 'commandExecution', source: 'agent', command: 'ls', status: 'completed', exitCode: 0 }
  const patch = {
    id: 'patch',
    type: 'fileChange',
    status: 'completed',
    changes: [{ path: '/w/a', kind: { type: 'add' }, diff: 'x' }],
  }
  const mcp = {
    id: 'm',
    type: 'mcpToolCall',
    server: 'files',
    tool: 'move',
    arguments: { from: 'a' },
    status: 'completed',
  }
  const asking: Record<string, object> = {
    call: {
      method: 'item/commandExecution/requestApproval',
      params: { threadId: 'main', itemId: 'call', command: 'ls' },
    },
    patch: { method: 'item/fileChange/requestApproval', params: { threadId: 'main', itemId: 'patch' } },
    m: {
      method: 'mcpServer/elicitation/request',
      params: {
        threadId: 'main',
        serverName: 'files',
        _meta: { codex_approval_kind: 'mcp_tool_call', tool_name: 'move', tool_params: { from: 'a' } },
      },
    },
  }
  const ended = (item: { id: string }, decision: typeof yes | typeof no | null, made: object) => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const push = (value: object) => dialogue.push(line(value))
    push({ id: 2, result: { thread: { id: 'main' } } })
    push({ id: 3, result: { turn: { id: 'turn' } } })
    push({ method: 'item/started', params: { threadId: 'main', item: { ...item, status: 'inProgress' } } })
    const [ask] = push({ id: 7, ...asking[item.id] }).asks ?? []
    expect(ask).toBeDefined()
    if (decision !== null) dialogue.answer(ask!.askId, decision)
    const { write = '' } = push({ method: 'item/completed', params: { threadId: 'main', item: { ...item, ...made } } })
    return { isStopped: write.includes('turn/interrupt'), message: dialogue.outcome(left).message }
  }

  it.each([ls, patch, mcp])('and allowed, or refused and not made, is as it should be: $type', (item) => {
    expect(ended(item, yes, {}).isStopped).toBe(false)
    const refused = { status: item.type === 'mcpToolCall' ? 'failed' : 'declined', exitCode: null }
    expect(ended(item, no, refused).isStopped).toBe(false)
  })

  it.each([
    ['a refused command', ls, no, {}],
    ['a refused command that failed', ls, no, { status: 'failed', exitCode: 7 }],
    ['a command before its answer', ls, null, {}],
    ['another command', ls, yes, { command: 'rm -r .' }],
    ['a refused patch', patch, no, {}],
    ['another patch', patch, yes, { changes: [{ path: '/w/b', kind: { type: 'add' }, diff: 'x' }] }],
    ['a refused call of a server', mcp, no, {}],
    ['a call of a server with another input', mcp, yes, { arguments: { from: '/etc' } }],
  ])('stops the run when it is made otherwise: %s', (_, item, decision, made) => {
    const { isStopped, message } = ended(item, decision, made)
    expect(isStopped).toBe(true)
    expect(message).toContain('but not as it was allowed')
  })
})

describe('a call that is denied', () => {
  const denied = 'Bash(ls) was denied: no rule allows it. Go on without it.'
  const opened = () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const push = (value: object) => dialogue.push(line(value))
    push({ id: 2, result: { thread: { id: 'main' } } })
    push({ id: 3, result: { turn: { id: 'turn' } } })
    const ask = (id: number, params: object) =>
      push({
        id,
        method: 'item/commandExecution/requestApproval',
        params: { threadId: 'main', itemId: `c${id}`, ...params },
      })
    return { dialogue, push, ask }
  }

  it('is answered once its own turn has taken the reason', () => {
    const { dialogue, push, ask } = opened()
    const told = [
      { threadId: 'main', turnId: 'turn' },
      { threadId: 'sub', turnId: 'of-sub' },
    ].map((of, index) => {
      const { asks } = ask(7 + index, { command: 'ls', ...of })
      return lines(dialogue.answer(asks![0]!.askId, { behavior: 'deny', message: denied }).write)
    })
    const steer = (id: number, threadId: string, expectedTurnId: string) => ({
      id,
      method: 'turn/steer',
      params: { threadId, expectedTurnId, input: [{ text: expect.stringContaining(denied) as string }] },
    })
    expect(told).toMatchObject([[steer(-1, 'main', 'turn')], [steer(-2, 'sub', 'of-sub')]])
    // The turn may be over by then, or take no more.
    expect(lines(push({ id: -2, result: { turnId: 'of-sub' } }).write)).toEqual([
      { id: 8, result: { decision: 'decline' } },
    ])
    const refused = push({ id: -1, error: { message: 'no active turn' } })
    expect([lines(refused.write), refused.events]).toEqual([[{ id: 7, result: { decision: 'decline' } }], []])
    expect(push({ id: -1, result: {} }).write).toBeUndefined()
  })

  it('without enough to judge it is declined at once, and the model is told so', () => {
    const { ask, push } = opened()
    const { asks, write } = ask(7, { command: null, turnId: 'turn' })
    expect(asks).toBeUndefined()
    expect(lines(write)).toMatchObject([{ id: -1, method: 'turn/steer' }])
    expect(lines(push({ id: -1, result: {} }).write)).toEqual([{ id: 7, result: { decision: 'decline' } }])
  })

  it('adds no words where the turn ends with it, or its turn is not named', () => {
    const { dialogue, ask } = opened()
    const stop = { behavior: 'deny', message: 'A person is asked.', stop: true } as const
    const first = ask(7, { command: 'ls', turnId: 'turn' }).asks![0]!
    expect(lines(dialogue.answer(first.askId, stop).write)).toMatchObject([{ id: 7, result: { decision: 'cancel' } }])
    const second = ask(8, { command: 'ls' }).asks![0]!
    const write = dialogue.answer(second.askId, { behavior: 'deny', message: denied }).write
    expect(lines(write)).toMatchObject([{ id: 8, result: { decision: 'decline' } }])
  })
})

describe('what codex tells beside its items', () => {
  const log = (text: string) =>
    Buffer.from(
      `\u{1b}[2m2026-11-28T23:55:25Z\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m \u{1b}[2mcodex_core::tools::router\u{1b}[0m\u{1b}[2m:\u{1b}[0m \u{1b}[3merror\u{1b}[0m\u{1b}[2m=\u{1b}[0m${text}\n`,
    )

  it('a call of a tool that it does not have is an event, which ends at once', () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const { events } = merged([
      dialogue.pushStderr(log('unsupported call: no_such_tool')),
      dialogue.pushStderr(log('unsupported call: other')),
    ])
    expect(
      events.map(({ kind, data }) => [kind, 'toolCallId' in data && data.toolCallId, 'name' in data && data.name]),
    ).toEqual([
      ['tool_call', 'unknown-tool-1', 'no_such_tool'],
      ['tool_result', 'unknown-tool-1', false],
      ['tool_call', 'unknown-tool-2', 'other'],
      ['tool_result', 'unknown-tool-2', false],
    ])
  })

  it('lines of its log that repeat what its protocol told are left out, and others are not', () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const refused = 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }'
    expect(dialogue.pushStderr(log(refused)).events).toEqual([])
    expect(dialogue.pushStderr(log('something else')).events).toMatchObject([{ kind: 'raw' }])
  })

  it('warnings are told once, and those of every start not at all', () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const warn = (method: string, params: object) => dialogue.push(line({ method, params })).events
    expect(warn('warning', { threadId: 't', message: 'Model metadata for `x` not found. Defaulting.' })).toEqual([])
    const told = [1, 2].flatMap(() => warn('configWarning', { summary: 'A key is wrong', details: 'line 3' }))
    expect(told).toMatchObject([{ kind: 'error', data: { class: 'warning', message: 'A key is wrong (line 3)' } }])
    expect(warn('warning', { message: 7 })).toMatchObject([{ kind: 'raw' }])
  })

  it('that it waits for a network ends the run at the third time without progress', () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const push = (value: object) => dialogue.push(line(value))
    push({ id: 2, result: { thread: { id: 'main' } } })
    push({ id: 3, result: { turn: { id: 'turn' } } })
    const error = {
      message: 'Reconnecting... waiting for network',
      codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: null } },
      additionalDetails: 'Connection failed: error sending request',
    }
    const wait = () => push({ method: 'error', params: { error, willRetry: true, threadId: 'main' } }).write
    const says = { id: 'i', type: 'agentMessage', text: 'On we go.' }
    expect([wait(), wait()]).toEqual([undefined, undefined])
    push({ method: 'item/completed', params: { threadId: 'main', item: says } })
    expect([wait(), wait()]).toEqual([undefined, undefined])
    expect(wait()).toContain('turn/interrupt')
    expect(wait()).toBeUndefined()
    push({ method: 'turn/completed', params: { threadId: 'main', turn: { id: 'turn', status: 'interrupted' } } })
    expect(dialogue.outcome(left)).toMatchObject({
      exitReason: 'error',
      failure: 'connection',
      message: 'codex does not reach its provider: Connection failed: error sending request',
    })
  })
})

describe('two questions about one call', () => {
  const asked = (id: number, command: string) =>
    line({
      id,
      method: 'item/commandExecution/requestApproval',
      params: { threadId: 'main', itemId: 'call', command },
    })
  const made = (command: string) => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    for (const value of [
      { id: 2, result: { thread: { id: 'main' } } },
      { id: 3, result: { turn: { id: 'turn' } } },
    ])
      dialogue.push(line(value))
    const [first] = dialogue.push(asked(7, 'ls')).asks!
    const [second] = dialogue.push(asked(8, 'rm -r .')).asks!
    dialogue.answer(first!.askId, { behavior: 'allow', rule: null })
    dialogue.answer(second!.askId, { behavior: 'deny', message: 'No.' })
    const item = { id: 'call', type: 'commandExecution', source: 'agent', command, status: 'completed', exitCode: 0 }
    return dialogue.push(line({ method: 'item/completed', params: { threadId: 'main', item } })).write ?? ''
  }

  it('each have their own answer: only what was allowed may be made', () => {
    expect(made('ls')).not.toContain('turn/interrupt')
    expect(made('rm -r .')).toContain('turn/interrupt')
  })
})

describe('questions', () => {
  const begin = [
    { id: 2, result: { thread: { id: 'main' } } },
    { id: 3, result: { turn: { id: 'turn' } } },
  ]
  const started = () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    for (const value of begin) dialogue.push(line(value))
    return dialogue
  }
  const command = (id: number, threadId = 'main') =>
    line({
      method: 'item/commandExecution/requestApproval',
      id,
      params: { threadId, itemId: 'call', command: "/bin/bash -c 'ls'", cwd: '/w' },
    })
  const allow = { behavior: 'allow', rule: null } as const

  it('whose id is that of an open one are refused with it: one answer would be taken for both', () => {
    const dialogue = started()
    const [ask] = dialogue.push(command(7)).asks ?? []
    const second = dialogue.push(command(7))
    expect(second.asks).toBeUndefined()
    expect(second.write).toBe('{"id":7,"result":{"decision":"decline"}}\n')
    expect(dialogue.answer(ask!.askId, allow).write).toBeUndefined()
  })

  it('may have the id of one that is over, and each gets its own answer, once', () => {
    const dialogue = started()
    for (let time = 0; time < 2; time++) {
      const [ask] = dialogue.push(command(7)).asks ?? []
      expect(dialogue.answer(ask!.askId, allow).write).toBe('{"id":7,"result":{"decision":"accept"}}\n')
      expect(dialogue.answer(ask!.askId, allow).write).toBeUndefined()
    }
  })

  it('of a subagent are told apart from those of the run', () => {
    const [ask] = started().push(command(0, 'other')).asks ?? []
    expect(ask).toMatchObject({ toolCallId: 'other/call', name: 'Bash', input: { command: 'ls' }, cwd: '/w' })
  })

  it.each([
    [
      'a patch of which nothing is known',
      'item/fileChange/requestApproval',
      { threadId: 'main', itemId: 'x' },
      { decision: 'decline' },
    ],
    [
      'no command',
      'item/commandExecution/requestApproval',
      { threadId: 'main', itemId: 'x', command: null },
      { decision: 'decline' },
    ],
    [
      'what a server asks a person',
      'mcpServer/elicitation/request',
      { threadId: 'main', serverName: 's', message: 'Name?' },
      { action: 'decline', content: null, _meta: null },
    ],
  ])('about %s are declined', (_, method, params, result) => {
    expect(started().push(line({ method, id: 1, params })).write).toBe(`${JSON.stringify({ id: 1, result })}\n`)
  })

  it.each([{ params: {} }, {}])('that nobody knows get an error, so that the turn goes on (%o)', (body) => {
    const { write } = started().push(line({ method: 'item/tool/call', id: 'x', ...body }))
    expect(JSON.parse(write ?? '')).toMatchObject({
      id: 'x',
      error: { message: expect.stringContaining('item/tool/call') },
    })
  })
})

describe('the script of a shell command', () => {
  it.each([
    ["/bin/bash -lc 'echo hi > a && cat a'", 'echo hi > a && cat a'],
    ['/bin/zsh -c ls', 'ls'],
    [`bash -c 'it'"'"'s'`, "it's"],
    ['/bin/bash -c "echo \\"a\\""', 'echo "a"'],
  ])('%s', (command, script) => {
    expect(scriptOf(command)).toBe(script)
  })

  it.each([
    'ls -l',
    "/bin/bash -c 'a' b",
    "/srv/app/sh -c 'a'",
    "/bin/bash -c 'a'; rm -rf /",
    '/bin/bash -c "$(rm -rf /)"',
    "python -c 'import os'",
    "/bin/bash -c 'open",
  ])('%s stays whole', (command) => {
    expect(scriptOf(command)).toBe(command)
  })
})

it('has a home of its own, without the rules of the person, and trusts no repository', () => {
  const machine = {
    firstStartDir: null,
    isRoot: false,
    loginShell: '/bin/sh',
    version: null,
    mcpServers: {},
    skills: [],
  }
  const facts = { cwd: '/w', runDir: '/run', ...machine }
  const launch = codexLaunch(specOf({ harness: 'codex' }), {
    ...facts,
    env: { HOME: '/home/ada' },
    foldersAround: ['/w', '/', '/odd"name'],
    repositoryFolders: [],
  })
  expect(launch.env).toEqual({ CODEX_HOME: '/run/codex' })
  expect(launch.links).toContainEqual({ path: '/run/codex/auth.json', target: '/home/ada/.codex/auth.json' })
  expect(launch.links?.map(({ target }) => target).join(' ')).not.toContain('rules')
  const [projects] = launch.args.filter((arg) => arg.startsWith('projects='))
  expect(projects).toBe(
    String.raw`projects={"/w"={trust_level="untrusted"},"/"={trust_level="untrusted"},"/odd\"name"={trust_level="untrusted"}}`,
  )
  const open = codexLaunch(specOf({ harness: 'codex', permissions: full }), {
    ...facts,
    env: {},
    foldersAround: ['/w'],
    repositoryFolders: [],
    firstStartDir: '/state/first-starts/codex-1.2.3',
  })
  expect([launch.copies, open.copies]).toEqual([[], [{ path: '/run/codex', from: '/state/first-starts/codex-1.2.3' }]])
  expect(open.args.join(' ')).not.toMatch(/projects|web_search/)
})

describe('skills', () => {
  const dialogue = () => codexDialogue(specOf({ harness: 'codex' }), { skills: [knots] })

  it('are named by their folders before the thread begins', () => {
    const written = lines(dialogue().open().write)
    expect(written.map(({ method }) => method)).toEqual([
      'initialize',
      'initialized',
      'skills/extraRoots/set',
      'config/read',
    ])
    expect(written[2]).toMatchObject({ params: { extraRoots: ['/skills/knots'] } })
    expect(JSON.stringify(lines(codexDialogue(specOf({ harness: 'codex' })).open().write))).not.toContain('skills')
  })

  it('that codex does not take are told, and the run goes on', () => {
    const run = dialogue()
    run.open()
    const error = { code: -32_600, message: 'unknown method' }
    const { events, finished } = run.push(Buffer.from(`${JSON.stringify({ id: 6, error })}\n`))
    expect(events).toMatchObject([{ kind: 'error', data: { class: 'skill_left_out', willRetry: false } }])
    expect(finished).toBeUndefined()
  })
})
