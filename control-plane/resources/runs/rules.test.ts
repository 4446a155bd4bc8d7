import { idFrom, type AgentRef, type PersonRef, type PersonUuid } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import type { Caller } from '../../http/callers.ts'
import { isRetriable, mayCancel, retryPrompt } from './rules.ts'

const person = (role: 'owner' | 'admin' | 'member', userId: PersonUuid): Caller => ({
  kind: 'person',
  via: 'dashboard_session',
  userId,
  userPublicId: idFrom('usr_1'),
  name: 'n',
  email: 'e',
  workspaceId: idFrom('w'),
  role,
})
const agent = (agentId: AgentRef): Caller => ({
  kind: 'agent',
  agentId,
  agentUuid: idFrom('u'),
  workspaceId: idFrom('w'),
  runId: idFrom('r'),
  fence: 1,
})

describe('who cancels and retries', () => {
  const run = { agentId: idFrom<AgentRef>('agt_1') }
  const owners = {
    agent: { ownerUserId: idFrom<PersonUuid>('a') },
    managers: [{ ownerUserId: null }, { ownerUserId: idFrom<PersonUuid>('c') }],
  }

  it('admins any run, owners theirs and those below, agents their own', () => {
    for (const caller of [
      person('owner', idFrom('x')),
      person('admin', idFrom('x')),
      person('member', idFrom('a')),
      person('member', idFrom('c')),
    ])
      expect(mayCancel(run, caller, owners)).toBe(true)
    expect(mayCancel(run, person('member', idFrom('b')), owners)).toBe(false)
    expect(mayCancel(run, agent(idFrom('agt_1')), owners)).toBe(true)
    expect(mayCancel(run, agent(idFrom('agt_2')), owners)).toBe(false)
  })

  it('only admins when the agent is gone', () => {
    const gone = { agent: null, managers: [] }
    expect(mayCancel(run, person('member', idFrom('a')), gone)).toBe(false)
    expect(mayCancel(run, person('admin', idFrom('a')), gone)).toBe(true)
  })
})

it('what failed or was cancelled can be retried', () => {
  const statuses = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const
  expect(statuses.filter((status) => isRetriable({ status }))).toEqual(['failed', 'cancelled'])
})

it('a retry says why after the prompt it repeats', () => {
  const by = { id: idFrom<PersonRef>('usr_1'), name: 'Ada' }
  const why = (prompt: string | null, reason: string | undefined) =>
    retryPrompt(prompt, { runId: idFrom('run_1'), reason, by })
  const because = (words: string) =>
    `This run retries run_1.\n\nRequest: reason of the retry, by "Ada" (usr_1):\n> ${words}`
  expect(why('Do', undefined)).toBe('Do')
  expect(why('Do', '  ')).toBe('Do')
  expect(why('Do', ' full disk ')).toBe(`Do\n\n${because('full disk')}`)
  expect(why(null, 'x')).toBe(because('x'))
  expect(why(null, undefined)).toBeNull()
})
