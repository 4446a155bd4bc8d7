import { idFrom } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { Redactor } from '../../../shared/lib/redact.ts'
import { askedCall, askedCallLimits, type AskedCall } from '../../../shared/runs/asked-call.ts'
import { inputsOf } from '../../../shared/permissions/call-inputs.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { ToolAsk } from '../../harness/adapter.ts'
import { judgedPlace, plainReach } from '../../../test/kit/judged-place.ts'
import { callDigest } from './call-digest.ts'
import { CallJudge, type CallAnswer } from './call-judge.ts'

const bash = (command: string, change: Partial<ToolAsk> = {}): ToolAsk => ({
  askId: 'r',
  toolCallId: 'toolu_1',
  name: 'Bash',
  input: { command },
  ...change,
})
const digestOf = ({ name, input }: ToolAsk) => callDigest(name, input)
const approvalOf = (ask: ToolAsk, approvalId: string) => ({ name: ask.name, inputDigest: digestOf(ask), approvalId })

function judgeWith(
  change: Partial<RunSpec['permissions']> & { allowCalls?: RunSpec['allowCalls'] } = {},
  options: { secrets?: { name: string; value: string }[]; mayAct?: () => boolean } = {},
) {
  const { allowCalls = [], ...permissions } = change
  const redactor = new Redactor(options.secrets ?? [])
  const asked: AskedCall[] = []
  const place = judgedPlace({ cwd: '/work' })
  const judge = new CallJudge({
    spec: {
      agent: { id: idFrom('agt_1'), handle: '@ada', name: 'Ada' },
      permissions: { allow: [], ask: [], deny: [], defaultMode: 'ask', ...permissions },
      allowCalls,
    },
    place,
    redactText: (text) => redactor.redactText(text),
    mayAct: options.mayAct ?? (() => true),
    mayAsk: () => true,
    onAsked: (call) => asked.push(call),
  })
  return { judge: { answer: (ask: ToolAsk) => judge.answer(ask, plainReach(ask, place)) }, asked, real: judge }
}
const decisionOf = ({ event, decision }: CallAnswer) => [event.data, decision.behavior]

describe('a call that must be asked', () => {
  it('is refused, told and asked with all that a person needs', () => {
    const { judge, asked } = judgeWith({ ask: ['Bash(npm:*)'], defaultMode: 'full' })
    const call = bash('npm publish')
    const { event, decision } = judge.answer(call)
    const expected = {
      toolCallId: 'toolu_1',
      name: 'Bash',
      inputDigest: digestOf(call),
      safeSummary: 'Bash: npm publish',
      toolArgs: { command: 'npm publish' },
      prompt: '@ada asks to use Bash (rule: Bash(npm:*)).\n\nnpm publish',
    }
    expect(asked).toEqual([expected])
    const { toolCallId, name, ...ask } = expected
    expect(event).toEqual({
      kind: 'permission',
      data: { toolCallId, name, decision: 'ask', rule: 'Bash(npm:*)', ask },
    })
    expect(decision).toMatchObject({ behavior: 'deny', stop: true, message: expect.stringContaining('is asked now') })
  })

  it('is one of several of its turn, each asked once; what is allowed is not made any more', () => {
    const { judge, asked } = judgeWith({ allow: ['Read'] })
    const read = { ...bash(''), name: 'Read', input: { file_path: '/srv/a' } }
    expect(judge.answer(read).decision.behavior).toBe('allow')
    for (const command of ['one', 'two', 'one', 'two'])
      expect(judge.answer(bash(command)).event.data).toHaveProperty('ask')
    expect(asked.map(({ safeSummary }) => safeSummary)).toEqual(['Bash: one', 'Bash: two'])
    expect(judge.answer(read)).toMatchObject({
      event: { data: { decision: 'deny' } },
      decision: { behavior: 'deny', stop: true, message: expect.stringContaining('can be made again') },
    })
  })

  it('is refused and not asked beyond the limit, and once the run ends for another reason', () => {
    const { judge, asked } = judgeWith()
    for (let at = 0; at < askedCallLimits.calls + 5; at++) judge.answer(bash(`number ${at}`))
    expect(asked).toHaveLength(askedCallLimits.calls)
    const late = judgeWith({}, { mayAct: () => false })
    const { event, decision } = late.judge.answer(bash('ls'))
    expect(event.data).toEqual({ toolCallId: 'toolu_1', name: 'Bash', decision: 'ask' })
    expect(decision).toMatchObject({ behavior: 'deny', stop: true })
    expect(late.asked).toEqual([])
  })

  it('is not made once the run ends for another reason, also where a rule or an approval allows it', () => {
    const call = bash('git push')
    const { judge } = judgeWith({ allow: ['Read'], allowCalls: [approvalOf(call, 'apr_1')] }, { mayAct: () => false })
    const read = { ...bash(''), name: 'Read', input: { file_path: '/srv/a' } }
    for (const { event, decision } of [judge.answer(read), judge.answer(call)]) {
      expect(event.data).toMatchObject({ decision: 'deny' })
      expect(decision).toMatchObject({ behavior: 'deny', stop: true, message: expect.stringContaining('ends now') })
    }
  })

  it('is refused like any other when nobody could be shown its name', () => {
    const { judge, asked } = judgeWith()
    const { decision } = judge.answer(bash('ls', { name: 'x'.repeat(askedCallLimits.nameChars + 1) }))
    expect(decision).toMatchObject({ behavior: 'deny', message: expect.stringContaining('was denied') })
    expect(decision).not.toHaveProperty('stop')
    expect(asked).toEqual([])
  })

  it('is asked with a name and a summary that are just as long as they may be', () => {
    const { judge, asked } = judgeWith()
    const name = 'x'.repeat(askedCallLimits.nameChars)
    const chars = (more: number) => 'y'.repeat(askedCallLimits.summaryChars - 'Bash: '.length + more)
    judge.answer(bash('ls', { name }))
    for (const more of [0, 1]) judge.answer(bash(chars(more)))
    expect(asked[0]?.name).toBe(name)
    expect(asked.slice(1).map(({ safeSummary }) => safeSummary)).toEqual([`Bash: ${chars(0)}`, `Bash: ${chars(-3)}...`])
  })

  it.each([
    ['an input that is no object', 'just text'],
    ['no input', undefined],
    ['an empty one', {}],
    ['a long one', { command: `echo ${'"\\\u0001\u{1f600}'.repeat(20_000)}` }],
    ['one that is nested deep', JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) as unknown],
    ['writing that turns around', { command: 'echo \u202e sl \u202c\r\u001b[2K' }],
  ])('is within the limits of what is told, with %s', (_, input) => {
    const { judge, asked } = judgeWith()
    const toolCallId = 'x'.repeat(1_000)
    const { event } = judge.answer(bash('', { input, toolCallId }))
    expect(askedCall.parse(asked[0])).toEqual(asked[0])
    expect(JSON.stringify(event).length).toBeLessThan(64 * 1024)
    // oxlint-disable-next-line no-control-regex
    expect(`${asked[0]!.safeSummary}${asked[0]!.prompt}`).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]/)
  })

  it('says when not all of it is shown', () => {
    const { judge, asked } = judgeWith()
    judge.answer(bash(`echo ${'x'.repeat(50_000)}`))
    expect(asked[0]!.prompt).toContain('Not all of its input is shown')
  })

  it('is told where its paths lead, however long they are and however many come before', () => {
    const secrets = [{ name: 'DEPLOY', value: 'correct-horse-battery' }]
    const fact = (text: string, target: string) => ({
      text,
      forms: [text, target],
      rest: '',
      isFolder: false,
      doubt: null,
    })
    const ask = (paths: readonly ReturnType<typeof fact>[]) => {
      const { real, asked } = judgeWith({}, { secrets })
      const call = bash('', { name: 'Write', input: { paths: paths.map(({ text }) => text) } })
      real.answer(call, { inputs: inputsOf(call), paths })
      return asked[0]!.prompt
    }
    const long = `${'./'.repeat(1_000)}notes`
    expect(ask([fact(long, '/home/ada/.ssh/authorized_keys')])).toContain(
      './notes leads to /home/ada/.ssh/authorized_keys.',
    )
    expect(ask([fact('a\n\nb', '/c')])).toContain(' a  b leads to /c.')
    const many = Array.from({ length: 60 }, (_, at) => fact(`notes/${at}`, `/srv/${'x'.repeat(60)}/${at}`))
    expect(ask([...many, fact('last', '/etc/shadow')])).toMatch(/ \d\d more of its paths lead elsewhere\.\n/)
    for (let before = 150; before < 250; before++)
      expect(ask([fact('a', `/correct-horse-battery/${'y'.repeat(before)}`)])).not.toMatch(/horse|battery/)
  })

  it('shows the command that is run, also where that looks like a secret', () => {
    for (const input of [{ command: 'x=token: /tmp/evil.sh' }, { script: 'x=token: /tmp/evil.sh' }]) {
      const { judge, asked } = judgeWith()
      judge.answer(bash('', { input, name: 'mcp__shell__run' }))
      expect(asked[0]!.prompt).toContain('x=token: /tmp/evil.sh')
      expect(asked[0]!.safeSummary).toContain('x=token: /tmp/evil.sh')
    }
  })

  it('shows no secret: those of the run by their name, others by their form', () => {
    const secrets = [{ name: 'DEPLOY', value: 'correct horse battery' }]
    const { judge, asked } = judgeWith({}, { secrets })
    const call = bash('deploy --with "correct horse battery" --token=abcdef123456', { input: undefined })
    call.input = { command: 'deploy --with "correct horse battery" --token=abcdef123456' }
    judge.answer(call)
    const shown = 'deploy --with "[redacted:DEPLOY]" --token=[masked]'
    expect(asked[0]).toMatchObject({
      safeSummary: `Bash: ${shown}`,
      toolArgs: { command: shown },
      prompt: expect.stringContaining(shown),
      inputDigest: digestOf(call),
    })
  })
})

describe('a call that a person allowed', () => {
  const push = bash('git push')
  const allowed = (id: string) => [`approval:${id}`, 'allow']
  const ruleOf = (answer: CallAnswer) => {
    const data = answer.event.data as { rule?: string }
    return [data.rule, answer.decision.behavior]
  }

  it('is made once for each approval, then asked again', () => {
    const allowCalls = [approvalOf(push, 'apr_1'), approvalOf(bash('ls'), 'apr_2'), approvalOf(push, 'apr_3')]
    const { judge, asked } = judgeWith({ allowCalls, ask: ['Bash'] })
    expect(ruleOf(judge.answer(push))).toEqual(allowed('apr_1'))
    expect(ruleOf(judge.answer(push))).toEqual(allowed('apr_3'))
    expect(ruleOf(judge.answer(bash('ls')))).toEqual(allowed('apr_2'))
    expect(asked).toEqual([])
    expect(judge.answer(push).decision.behavior).toBe('deny')
    expect(asked).toHaveLength(1)
  })

  it('is known by its digest, whatever the order of its fields, and by nothing else', () => {
    const call = bash('', { input: { command: 'git push', timeout: 5 } })
    const same = bash('', { input: { timeout: 5, command: 'git push' } })
    for (const [other, isSame] of [
      [same, true],
      [bash('git push'), false],
      [bash('git push '), false],
      [bash('', { input: { command: 'git push', timeout: '5' } }), false],
      [{ ...call, name: 'bash' }, false],
    ] as const) {
      const { judge } = judgeWith({ allowCalls: [approvalOf(call, 'apr_1')] })
      expect(judge.answer(other).decision.behavior, JSON.stringify(other)).toBe(isSame ? 'allow' : 'deny')
    }
  })

  it('is denied by a rule that forbids it, and goes before modes and lists that do not', () => {
    const allowCalls = [approvalOf(push, 'apr_1')]
    const denied = judgeWith({ allowCalls, deny: ['Bash(git push:*)'], allow: ['Bash'], defaultMode: 'full' })
    expect(decisionOf(denied.judge.answer(push))).toEqual([
      { toolCallId: 'toolu_1', name: 'Bash', decision: 'deny', rule: 'Bash(git push:*)' },
      'deny',
    ])
    expect(denied.asked).toEqual([])
    const strict = judgeWith({ allowCalls, defaultMode: 'strict' })
    expect(ruleOf(strict.judge.answer(push))).toEqual(allowed('apr_1'))
    expect(strict.judge.answer(push).decision.behavior).toBe('deny')
  })

  it('is made although others were allowed or denied before it', () => {
    const allowCalls = [approvalOf(push, 'apr_1')]
    const { judge, asked } = judgeWith({ allow: ['Read'], deny: ['Bash(rm:*)'], allowCalls })
    expect(judge.answer({ ...bash(''), name: 'Read', input: { file_path: '/home/ada/a' } }).decision.behavior).toBe(
      'allow',
    )
    expect(judge.answer(bash('rm -r x')).decision.behavior).toBe('deny')
    expect(ruleOf(judge.answer(push))).toEqual(allowed('apr_1'))
    expect(asked).toEqual([])
  })

  it('is this call whatever the model says it is for', () => {
    const told = bash('', { input: { command: 'git push', description: 'Push it' } })
    const { judge } = judgeWith({ allowCalls: [approvalOf(push, 'apr_1')] })
    expect(ruleOf(judge.answer(told))).toEqual(allowed('apr_1'))
  })
})

describe('an agent that may do nothing', () => {
  it('is told of once it tried, and no more when anything was allowed', () => {
    const { judge, real } = judgeWith({ defaultMode: 'strict', allow: ['Read'], deny: ['Bash(rm:*)'] })
    expect(real.nothingAllowed(0)).toBe(null)
    judge.answer(bash('make'))
    expect(real.nothingAllowed(0)).toBe(
      'The one tool call that the agent tried was denied by its permissions: the mode strict. `svc agent permissions check` tells why.',
    )
    judge.answer(bash('make all'))
    judge.answer(bash('rm -r x'))
    expect(real.nothingAllowed(0)).toContain('All 3 tool calls that the agent tried were denied')
    expect(real.nothingAllowed(0)).toContain(': the mode strict; the rule Bash(rm:*).')
    expect(real.nothingAllowed(3)).toContain('All 3')
    expect(real.nothingAllowed(4)).toBe(null)
    judge.answer({ ...bash(''), name: 'Read', input: { file_path: 'a' } })
    expect(real.nothingAllowed(0)).toBe(null)
  })
})
