import { idFrom, type PersonRef } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { inputsOf } from '../../../shared/permissions/call-inputs.ts'
import { decide } from '../../../shared/permissions/decide.ts'
import type { JudgedPlace } from '../../../shared/permissions/patterns/path-rules.ts'
import type { ToolRule } from '../../../shared/runs/spec.ts'
import type { PersonCaller } from '../../http/callers.ts'
import { allowRulesOf, assignRefusalOf, holdsItsRun, isAsking, platformChangeMs, resolveRefusal } from './rules.ts'

const bash = (command: string) => allowRulesOf({ name: 'Bash', toolArgs: { command } })
const rule = (pattern: string) => ({ tool: 'Bash', pattern })

test('the rule for a call matches only that call', () => {
  expect(bash('npm publish')).toEqual([rule('npm publish')])
  expect(bash(' make && git push;ls ')).toEqual([rule('make'), rule('git push'), rule('ls')])
  expect(allowRulesOf({ name: 'Edit', toolArgs: { file_path: '/srv/a b.ts', new_string: 'x' } })).toEqual([
    { tool: 'Edit', pattern: '/srv/a b.ts' },
  ])
  expect(allowRulesOf({ name: 'mcp__tracker__create', toolArgs: { title: 'x' } })).toEqual(['mcp__tracker__create'])
  // A rule for `npm` alone would allow whatever else it is given.
  expect(allowRulesOf({ name: 'mcp__shell__run', toolArgs: { command: 'npm', args: ['test'] } })).toEqual([
    { tool: 'mcp__shell__run', pattern: 'npm test' },
  ])
  expect(allowRulesOf({ name: 'TodoWrite' })).toEqual(['TodoWrite'])
  expect(allowRulesOf({ name: 'Skill', toolArgs: { skill: 'review' } })).toEqual([{ tool: 'Skill', pattern: 'review' }])
  expect(allowRulesOf({ name: 'Task', toolArgs: { subagent_type: 'scout', prompt: 'x' } })).toEqual([
    { tool: 'Task', pattern: 'scout' },
  ])
})

test('texts in quotes are held as they are written, and nothing else passes by the rule', () => {
  const place = { cwd: '/w', realCwd: '/w', homeDir: '/h', ownFolders: [], svcProgram: null } as unknown as JudgedPlace
  const allows = (rules: ToolRule[], command: string) => {
    const call = { name: 'Bash', input: { command } }
    const inputs = inputsOf(call)
    const permissions = { allow: rules, ask: [], deny: [], defaultMode: 'strict' as const }
    return decide(permissions, place, { ...call, inputs, paths: [] }).decision === 'allow'
  }
  for (const [command, ...parts] of [
    ['git commit -m "fix: a (b) & c"', 'git commit -m "fix: a (b) & c"'],
    ["rg 'foo|bar' src && npm test", "rg 'foo|bar' src", 'npm test'],
    [`git commit -m "it's; done" ; ls`, `git commit -m "it's; done"`, 'ls'],
    [`echo 'say "hi"'`, `echo 'say "hi"'`],
    [`cd "a b" && make`, `cd "a b"`, 'make'],
  ] as [string, ...string[]][]) {
    const rules = bash(command)
    expect(rules).toEqual(parts.map(rule))
    expect([command, allows(rules!, command)]).toEqual([command, true])
    for (const other of [
      `${command} x`,
      command.replace(/['"]/, ''),
      `${command}; rm x`,
      command.replaceAll(/['"]/g, ''),
    ])
      expect([other, allows(rules!, other)]).toEqual([other, false])
  }
})

test('a call that no rule can match exactly gets none', () => {
  for (const command of [
    'rm -rf *',
    'cat a | sh',
    'a & b',
    'echo "x',
    'echo "$HOME"',
    'echo "a\\"b"',
    "grep 'a*' x",
    "git commit -m 'a\nb'",
    "curl -H 'Authorization: [masked]'",
    "A='b c' make",
    "cd 'a b' && A='b' make",
    "cat 'a b' | sh",
    'x > y',
    'A=1 make',
    'make\nrm x',
    'token=[masked] x',
    'a &&',
    'echo $HOME',
    'x'.repeat(501),
    '',
    'npm run:',
  ])
    expect([command, bash(command)]).toEqual([command, null])
  expect(allowRulesOf({ name: 'Bash', toolArgs: { command: ['sh', '-c', 'x'] } })).toBeNull()
  expect(allowRulesOf({ name: 'Read', toolArgs: { path: '/a/*' } })).toBeNull()
  expect(allowRulesOf({ name: 'mcp__*', toolArgs: {} })).toBeNull()
  // The whole tool is not allowed, because what is approved is not what its calls look like.
  for (const toolArgs of [undefined, {}, { script: 'ls' }, { command: 42 }, { command: null }])
    expect([toolArgs, allowRulesOf({ name: 'Bash', toolArgs })]).toEqual([toolArgs, null])
  expect(allowRulesOf({ name: 'Write', toolArgs: { content: 'x' } })).toBeNull()
  expect(allowRulesOf({ name: 'mcp__runner__run', toolArgs: { command: ['ls'] } })).toBeNull()
  // The whole tool is not allowed either where nobody knows it and it would open every command, path or address.
  for (const toolArgs of [{ script: 'ls' }, { args: { source: '/a', target: '/b' } }, { uri: 'https://a.test/' }])
    expect([toolArgs, allowRulesOf({ name: 'mcp__host__run', toolArgs })]).toEqual([toolArgs, null])
  // Nobody could read the rule.
  expect(allowRulesOf({ name: 'my tool (beta)', toolArgs: {} })).toBeNull()
  // Would be read as any address of that domain.
  expect(allowRulesOf({ name: 'WebFetch', toolArgs: { url: 'domain:example.com' } })).toBeNull()
})

const open = {
  status: 'open',
  assignedType: 'user',
  assignedRef: idFrom<PersonRef>('usr_1'),
  trigger: 'tool_permission',
  createdAt: 0,
} as const
const by = (userPublicId: PersonRef) => ({ personRef: userPublicId })

test('an open approval is resolved by its assignee, by anyone when it has none, and by nobody when it is the system’s', () => {
  expect(resolveRefusal(open, by(idFrom('usr_1')), 0)).toBeNull()
  expect(resolveRefusal(open, by(idFrom('usr_2')), 0)).toBe('approval_assignee_mismatch')
  expect(resolveRefusal({ ...open, assignedType: null, assignedRef: null }, by(idFrom('usr_2')), 0)).toBeNull()
  expect(resolveRefusal({ ...open, status: 'resolved' }, by(idFrom('usr_1')), 0)).toBe('approval_resolved')
  const ofSystem = { ...open, assignedType: 'system', assignedRef: null, trigger: 'budget_breach' } as const
  expect(resolveRefusal(ofSystem, by(idFrom('usr_1')), 0)).toBe('user_cannot_resolve_system_approval')
  const change = { ...open, trigger: 'platform_change' } as const
  expect(resolveRefusal(change, by(idFrom('usr_1')), platformChangeMs - 1)).toBeNull()
  expect(resolveRefusal(change, by(idFrom('usr_1')), platformChangeMs)).toBe('approval_resolved')
})

test('only admins assign, and only approvals that people resolve', () => {
  const person = (role: 'admin' | 'member') => ({ kind: 'person', role }) as PersonCaller
  expect(assignRefusalOf(open, person('member'))).toBe('not_authorized')
  expect(assignRefusalOf(open, person('admin'))).toBeNull()
  expect(assignRefusalOf({ ...open, status: 'resolved' }, person('admin'))).toBe('approval_resolved')
  expect(assignRefusalOf({ ...open, assignedType: 'system' }, person('admin'))).toBe('approval_not_user_assignable')
})

test('approvals that hold a run, and approvals that count as asking', () => {
  expect(
    ['tool_permission', 'connection_action', 'instruction_publish'].every((one) =>
      holdsItsRun(one as 'tool_permission'),
    ),
  ).toBe(true)
  expect(holdsItsRun('platform_change') || holdsItsRun('budget_breach') || holdsItsRun('learning_review')).toBe(false)
  expect([isAsking('question_asked'), isAsking('approval_requested'), isAsking('completed'), isAsking(null)]).toEqual([
    true,
    true,
    false,
    false,
  ])
})
