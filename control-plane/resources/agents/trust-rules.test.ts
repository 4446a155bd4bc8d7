import { agentCaller, personCaller } from '../../../test/kit/callers.ts'
import { idFrom, type PersonUuid } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { decidesWhatRuns, mayChangeItself, needsWordOf, settingsRefusalOf } from './trust-rules.ts'

const agent = agentCaller()

const change = (from: 'claude' | 'codex' | 'command' | null, to: typeof from, ...keys: string[]) => ({
  before: { harness: from, ownerUuid: idFrom<PersonUuid>('me') },
  after: { harness: to },
  keys,
})

test('the command of an agent, and a change to or from a command agent, decide what runs; a change between other programs does not', () => {
  expect(decidesWhatRuns(change('claude', 'codex', 'runtime.harness'))).toBe(false)
  expect(decidesWhatRuns(change(null, 'claude', 'runtime.harness', 'runtime.model', 'agentMd'))).toBe(false)
  expect(decidesWhatRuns(change('claude', 'command', 'runtime.harness'))).toBe(true)
  expect(decidesWhatRuns(change('command', null, 'runtime.harness'))).toBe(true)
  expect(decidesWhatRuns(change('claude', 'claude', 'runtime.command'))).toBe(true)
  expect(decidesWhatRuns(change('command', 'command', 'runtime.protocol'))).toBe(true)
  expect(decidesWhatRuns(change('codex', 'codex', 'runtime.skillFolders'))).toBe(true)
})

test('only the owner and admins change what runs, and only admins change permissions', () => {
  const command = change('claude', 'command', 'runtime.harness', 'runtime.command')
  expect(settingsRefusalOf(command, personCaller('member'))).toBeNull()
  expect(settingsRefusalOf(command, personCaller('admin', 'boss'))).toBeNull()
  expect(settingsRefusalOf(command, personCaller('member', 'you'))).toMatchObject({ param: 'config.runtime.command' })
  expect(settingsRefusalOf(command, agent)).not.toBeNull()
  const harness = change('command', 'claude', 'runtime.harness')
  expect(settingsRefusalOf(harness, personCaller('member', 'you'))).toMatchObject({ param: 'config.runtime.harness' })
  const permissions = change(null, null, 'permissions.tools.allow')
  expect(settingsRefusalOf(permissions, personCaller('member'))).toMatchObject({ param: 'config.permissions' })
  expect(settingsRefusalOf(permissions, personCaller('admin', 'boss'))).toBeNull()
})

test('an agent may change its own settings that any person may change, but never its program', () => {
  expect(mayChangeItself(change('claude', 'codex', 'runtime.harness', 'runtime.model', 'agentMd'))).toBe(true)
  expect(mayChangeItself(change(null, null))).toBe(true)
  expect(mayChangeItself(change('claude', 'command', 'runtime.harness'))).toBe(false)
  expect(mayChangeItself(change('command', 'claude', 'runtime.harness'))).toBe(false)
  expect(mayChangeItself(change(null, null, 'runtime.command'))).toBe(false)
  expect(mayChangeItself(change('command', 'command', 'runtime.protocol'))).toBe(false)
  expect(mayChangeItself(change(null, null, 'runtime.skillFolders'))).toBe(false)
  expect(mayChangeItself(change(null, null, 'permissions.tools.deny'))).toBe(false)
})

test('an agent that a member gives to somebody else waits for their consent', () => {
  expect(needsWordOf({ id: idFrom('you') }, personCaller('member'))).toBe(true)
  expect(needsWordOf({ id: idFrom('me') }, personCaller('member'))).toBe(false)
  expect(needsWordOf({ id: idFrom('you') }, personCaller('admin'))).toBe(false)
})
