import { expect, test } from 'vitest'
import { harnesses } from '../../../shared/runs/harnesses.ts'
import {
  changedLists,
  missingRule,
  namesKnownTool,
  problemOfLists,
  withoutRules,
  withRules,
} from './permission-rules.ts'

const rule = (pattern: string) => ({ tool: 'Bash', pattern })
const lists = { allow: ['Read', 'Bash(ls)'], ask: [], deny: ['Bash(rm:*)'] }

test('a rule is added once, in whichever form, and taken away in either', () => {
  expect(withRules(['Read', 'Bash(ls)'], [rule('ls'), rule('make'), rule('make')])).toEqual([
    'Read',
    'Bash(ls)',
    rule('make'),
  ])
  expect(withoutRules(['Bash', 'Bash(ls)', rule('ls')], [rule('ls')])).toEqual(['Bash'])
})

test('lists that a change does not name stay, and null empties one', () => {
  expect(changedLists(lists, { add: undefined, remove: undefined })).toEqual(lists)
  expect(changedLists(lists, { add: { deny: ['Write'] }, remove: { allow: ['Read'] } })).toEqual({
    allow: ['Bash(ls)'],
    ask: [],
    deny: ['Bash(rm:*)', 'Write'],
  })
  expect(changedLists(lists, { add: { deny: null }, remove: undefined }).deny).toEqual([])
})

test('a rule that is not there cannot be taken away', () => {
  expect(missingRule(lists, { allow: ['Read'], deny: [rule('rm:*')] })).toBeNull()
  expect(missingRule(lists, { ask: ['Read'] })?.message).toBe('The ask list has no rule `Read`. It is empty.')
  expect(missingRule(lists, { allow: ['Edit'] })?.message).toContain('It has `Read`, `Bash(ls)`.')
})

test('a new rule must be readable, and an old one may stay', () => {
  const old = { ...lists, deny: ['Bash(rm:*'] }
  expect(problemOfLists(lists, old)).toMatchObject({ param: 'config.permissions.tools.deny' })
  expect(problemOfLists(old, { ...old, allow: [] })).toBeNull()
  expect(problemOfLists(old, { ...old, ask: ['Bash(rm:*'] })).toMatchObject({ param: 'config.permissions.tools.ask' })
})

test('a list that is full takes no more, and one that is over its bound can be made shorter', () => {
  const many = (count: number) => ({ ...lists, deny: Array.from({ length: count }, (_, at) => `Tool${at}`) })
  expect(problemOfLists(many(500), many(501))).toMatchObject({ message: 'A list has at most 500 rules.' })
  expect(problemOfLists(many(502), many(501))).toBeNull()
})

test.for([
  ['claude', 'bash', true],
  ['claude', 'Bsh', false],
  ['claude', 'none', false],
  ['claude', '*', true],
  ['claude', 'Notebook*', true],
  ['claude', 'Web*', true],
  ['claude', 'Wob*', false],
  ['claude', 'mcp__github__get_issue', true],
  ['claude', 'mcp*', true],
  ['codex', 'Read', false],
  ['cursor', 'acp__delete', true],
  ['command', 'Bash', true],
  ['command', 'Write', false],
] as const)('of %s, %s names a tool: %s', ([harness, tool, expected]) => {
  expect(namesKnownTool({ tool }, harnesses[harness].tools)).toBe(expected)
})
