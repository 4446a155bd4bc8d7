import { idFrom, type PersonUuid } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import type { Caller } from '../../http/callers.ts'
import { decidesWhatRuns, mayChangeItself, needsWordOf, settingsRefusalOf } from './trust-rules.ts'

const person = (role: 'owner' | 'admin' | 'member', userId = 'me'): Caller => ({
  kind: 'person',
  via: 'login_token',
  userId: idFrom(userId),
  userPublicId: idFrom('usr_1'),
  name: 'n',
  email: 'e',
  workspaceId: idFrom('w'),
  role,
})
const agent: Caller = {
  kind: 'agent',
  agentId: idFrom('agt_me'),
  agentUuid: idFrom('u'),
  workspaceId: idFrom('w'),
  runId: idFrom('r'),
  fence: 1,
}

const change = (from: 'claude' | 'codex' | 'command' | null, to: typeof from, ...keys: string[]) => ({
  before: { harness: from, ownerUserId: idFrom<PersonUuid>('me') },
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
  expect(settingsRefusalOf(command, person('member'))).toBeNull()
  expect(settingsRefusalOf(command, person('admin', 'boss'))).toBeNull()
  expect(settingsRefusalOf(command, person('member', 'you'))).toMatchObject({ param: 'config.runtime.command' })
  expect(settingsRefusalOf(command, agent)).not.toBeNull()
  const harness = change('command', 'claude', 'runtime.harness')
  expect(settingsRefusalOf(harness, person('member', 'you'))).toMatchObject({ param: 'config.runtime.harness' })
  const permissions = change(null, null, 'permissions.tools.allow')
  expect(settingsRefusalOf(permissions, person('member'))).toMatchObject({ param: 'config.permissions' })
  expect(settingsRefusalOf(permissions, person('admin', 'boss'))).toBeNull()
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
  expect(needsWordOf({ id: idFrom('you') }, person('member'))).toBe(true)
  expect(needsWordOf({ id: idFrom('me') }, person('member'))).toBe(false)
  expect(needsWordOf({ id: idFrom('you') }, person('admin'))).toBe(false)
})
