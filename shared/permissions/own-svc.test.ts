import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ToolPermissions } from '../runs/spec.ts'
import { judgedPlace, plainReach } from '../../test/kit/judged-place.ts'
import { decide } from './decide.ts'

const place = judgedPlace({ svcProgram: '/state/bin/svc', ownFolders: ['/state'] })
function decided(command: string, change: Partial<ToolPermissions> = {}, on = place) {
  const call = { name: 'Bash', input: { command, description: 'Read the task' } }
  const permissions: ToolPermissions = { allow: [], ask: [], deny: [], defaultMode: 'strict', ...change }
  return decide(permissions, on, { ...call, ...plainReach(call, on) }).decision
}

describe('without any rule the run’s own svc', () => {
  test.for([
    'svc task get current --include comments',
    '/state/bin/svc task get T-1',
    `svc task transition current --status done --comment "It's done; see (a) & b"`,
    'svc question ask --prompt "Which?" --option a',
    'svc run read current',
    'svc whoami',
    'svc task batch',
    'svc task batch - --output=json',
    's"vc" help',
  ])('is allowed: %s', (command) => {
    for (const defaultMode of ['strict', 'ask'] as const) expect(decided(command, { defaultMode })).toBe('allow')
    expect(decided(command, { defaultMode: 'ask', ask: ['Bash'] })).toBe('allow')
    for (const rule of ['Bash', 'Bash(svc:*)', '*'])
      expect(decided(command, { deny: [rule], allow: ['Bash'] })).toBe('deny')
    expect(decided(command, { ask: ['Bash(svc:*)'] })).toBe('ask')
    expect(decided(command, {}, judgedPlace())).toBe('deny')
  })

  test.for([
    'svc',
    'svc device disconnect',
    'svc folder add /',
    'svc api POST /agents',
    'svc login --token x',
    'svc run create --prompt x',
    'svc run cancel current',
    'svc agent config set me --mode full',
    'svc secret create --name A',
    'svc task get current; rm -rf .',
    'svc task get current && svc device disconnect',
    'svc task get current | sh',
    'svc task get current > out',
    'svc task get current 2>&1',
    'svc comment add T-1 --bodyFile /etc/passwd',
    'svc task get current &',
    'svc task get $(rm x)',
    'svc task get "$(rm x)"',
    'svc task get `rm x`',
    'svc task get $HOME',
    'svc task get *',
    'svc task get <(rm x)',
    'svc task get current\nrm x',
    'svc task get current # x',
    'svc comment add T-1 --body-file /etc/passwd',
    'svc comment add T-1 --body"-file"=/etc/passwd',
    String.raw`svc comment add T-1 --bo\dy-file=/etc/passwd`,
    'svc comment add T-1 --attach /etc/passwd',
    'svc run output current --file x',
    'svc task batch /etc/passwd',
    'svc task batch tasks.json',
    'svc task batch -- /etc/passwd',
    'svc task batch --output json /etc/passwd',
    'svc task batch - /etc/passwd',
    'SVC_API_URL=http://evil svc task get current',
    'env svc task get current',
    './svc task get current',
    '/tmp/svc task get current',
    '/state/bin/../bin/svc task get current',
    'cat /state/device-token',
  ])('is not: %s', (command) => expect(decided(command)).toBe('deny'))
})

test('another tool that takes commands has no svc of its own', () => {
  const call = { name: 'mcp__shell__run', input: { command: 'svc task get current' } }
  const permissions: ToolPermissions = { allow: [], ask: [], deny: [], defaultMode: 'strict' }
  expect(decide(permissions, place, { ...call, ...plainReach(call, place) }).decision).toBe('deny')
})

interface TableEntry {
  name: string
  positionals: { name: string; target: string | null }[]
  flags: { name: string; target: string | null; kind: string; aliases?: string[] }[]
}
const table = Object.values(
  JSON.parse(readFileSync(join(import.meta.dirname, '../../cli/arguments/command-table.json'), 'utf8')) as Record<
    string,
    TableEntry[]
  >,
).flat()

/** Flags whose value is not sent as it is given, and is no file either. A new one must be looked at before it stands here. */
const harmless = new Set([
  'question ask --wait',
  'question ask --option',
  'question ask --several',
  'learning add --bullet',
  'learning add --entity',
  'learning add --source',
  'run events --follow',
  'run read --full',
  'task assign --assignee',
  'task assign --unassign',
  'task get --history',
  'task move --parent',
  'task move --to-root',
  'task watch add --type',
  'task watch add --id',
  'task watch remove --type',
  'task watch remove --id',
])

test('no command that is allowed takes a file, by any of its words', () => {
  const opened: string[] = []
  for (const { name, positionals, flags } of table) {
    // Words that the server is sent as text read nothing.
    const words = positionals.map(({ target }) => (target === null ? './secret' : 'text'))
    if (positionals.some(({ target }) => target === null) && decided(`svc ${name} ${words.join(' ')}`) === 'allow')
      opened.push(name)
    for (const flag of flags.filter(({ target, kind }) => target === null || kind === 'file'))
      for (const spelt of [flag.name, ...(flag.aliases ?? [])].map((each) =>
        each.length > 1 ? `--${each}` : `-${each}`,
      ))
        for (const given of [`${spelt} ./secret`, `${spelt}=./secret`])
          if (decided(`svc ${name} text ${given}`) === 'allow') opened.push(`${name} ${spelt}`)
  }
  expect([...new Set(opened)].filter((one) => !harmless.has(one))).toEqual([])
})

test('the run’s copies of skills are its own, though they lie in a folder of svc', () => {
  const on = judgedPlace({ ownFolders: ['/state'], skillFolders: ['/state/own/h1/skills'] })
  const allowing: ToolPermissions = { allow: ['Bash', 'Read', 'Grep'], ask: [], deny: [], defaultMode: 'ask' }
  const decision = (name: string, input: Record<string, string>) =>
    decide(allowing, on, { name, input, ...plainReach({ name, input }, on) }).decision
  const [mine, others] = ['/state/own/h1/skills/tides', '/state/own/h2/skills/tides']
  for (const path of [`${mine}/refs/times.md`, mine, '/state/own/h1/skills'])
    expect([path, decision('Read', { file_path: path })]).toEqual([path, 'allow'])
  for (const path of [others, `${mine}/../../../../device-token`, '/state/own/h1', '/state/own/h1/skillsX', '/state'])
    expect([path, decision('Read', { file_path: path })]).toEqual([path, 'deny'])
  expect(decision('Grep', { path: '/state', pattern: 'x' })).toBe('deny')
  const commands = [`sh ${mine}/run.sh`, `cat ${others}/x`, `cat ${mine}/../../../x`, `sh ${mine}/run.sh /state/token`]
  expect(commands.map((command) => decision('Bash', { command }))).toEqual(['allow', 'deny', 'deny', 'deny'])
})

describe('the run’s own skill', () => {
  const own = judgedPlace({ svcSkill: 'svc:svc' })
  const loads = (input: unknown, change: Partial<ToolPermissions> = {}, { name = 'Skill', on = own } = {}) => {
    const permissions: ToolPermissions = { allow: [], ask: [], deny: [], defaultMode: 'ask', ...change }
    return decide(permissions, on, { name, input, ...plainReach({ name, input }, on) }).decision
  }

  test('is loaded without asking where no rule speaks of it', () => {
    for (const defaultMode of ['strict', 'ask', 'full'] as const)
      expect(loads({ skill: 'svc:svc' }, { defaultMode })).toBe('allow')
    expect(loads({ skill: 'svc:svc', args: 'for tasks' })).toBe('allow')
    expect(loads({ skill: 'svc:svc' }, { ask: ['Skill'] })).toBe('ask')
    expect(loads({ skill: 'svc:svc' }, { ask: ['Skill(svc:svc)'] })).toBe('ask')
    expect(loads({ skill: 'svc:svc' }, { deny: ['Skill'], allow: ['Skill'] })).toBe('deny')
  })

  test('and no other skill, nor where the run has none', () => {
    for (const skill of ['svc', 'svc:other', 'SVC:svc', 'svc:svc ', ['svc:svc'], null, undefined])
      expect([skill, loads({ skill })]).toEqual([skill, 'ask'])
    expect(loads(null)).not.toBe('allow')
    expect(loads({ skill: 'svc:svc' }, {}, { name: 'Other' })).toBe('ask')
    expect(loads({ skill: 'svc:svc' }, {}, { on: judgedPlace() })).toBe('ask')
    expect(loads({ skill: 'svc:svc', file_path: '/etc/passwd' })).toBe('ask')
  })
})
