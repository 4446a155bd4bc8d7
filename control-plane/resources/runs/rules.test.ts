import { idFrom, type AgentRef, type PersonRef, type PersonUuid } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { agentCaller, personCaller } from '../../../test/kit/callers.ts'
import { isRetriable, mayCancelRun, retryPrompt } from './rules.ts'

const agent = (agentId: AgentRef) => agentCaller({ agentRef: agentId })

describe('who cancels and retries', () => {
  const run = { agentRef: idFrom<AgentRef>('agt_1') }
  const owners = {
    agent: { ownerUuid: idFrom<PersonUuid>('a') },
    managers: [{ ownerUuid: null }, { ownerUuid: idFrom<PersonUuid>('c') }],
  }

  it('admins any run, owners theirs and those below, agents their own', () => {
    for (const caller of [
      personCaller('owner', idFrom('x')),
      personCaller('admin', idFrom('x')),
      personCaller('member', idFrom('a')),
      personCaller('member', idFrom('c')),
    ])
      expect(mayCancelRun(run, caller, owners)).toBe(true)
    expect(mayCancelRun(run, personCaller('member', idFrom('b')), owners)).toBe(false)
    expect(mayCancelRun(run, agent(idFrom('agt_1')), owners)).toBe(true)
    expect(mayCancelRun(run, agent(idFrom('agt_2')), owners)).toBe(false)
  })

  it('only admins when the agent is gone', () => {
    const gone = { agent: null, managers: [] }
    expect(mayCancelRun(run, personCaller('member', idFrom('a')), gone)).toBe(false)
    expect(mayCancelRun(run, personCaller('admin', idFrom('a')), gone)).toBe(true)
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
