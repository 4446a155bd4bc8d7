import { agentCaller, personCaller } from '../../../test/kit/callers.ts'
import { idFrom, type AgentUuid, type PersonUuid } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import type { Caller, PersonCaller } from '../../http/callers.ts'
import { isProjectVisible, ownsOrAdministersProject, previewOfDescription, projectViewerOf } from './rules.ts'

const person = (role: PersonCaller['role'], userId = 'u') => personCaller(role, userId)
const agent = agentCaller({ agentRef: idFrom('agt_1'), agentUuid: idFrom('a1') })
const hidden = { visibility: 'private', ownerUuid: idFrom<PersonUuid>('u'), leadAgentUuid: null } as const

test('a private project is visible to its owner, admins, its lead agent, and agents with a grant', () => {
  const sees = (caller: Caller, project: Parameters<typeof isProjectVisible>[0] = hidden, isGranted = false) =>
    isProjectVisible(project, projectViewerOf(caller), isGranted)
  expect(sees(person('member'))).toBe(true)
  expect(sees(person('member', 'other'))).toBe(false)
  expect(sees(person('admin', 'other'))).toBe(true)
  expect(sees(agent)).toBe(false)
  expect(sees(agent, hidden, true)).toBe(true)
  expect(sees(agent, { ...hidden, leadAgentUuid: idFrom<AgentUuid>('a1') })).toBe(true)
  expect(sees(agent, { ...hidden, visibility: 'company' })).toBe(true)
  expect(sees(person('member'), { ...hidden, ownerUuid: null })).toBe(false)
})

test('only people own or administer a project', () => {
  expect(ownsOrAdministersProject(hidden, person('member'))).toBe(true)
  expect(ownsOrAdministersProject(hidden, person('member', 'other'))).toBe(false)
  expect(ownsOrAdministersProject({ ownerUuid: null }, person('owner', 'other'))).toBe(true)
  expect(ownsOrAdministersProject({ ownerUuid: null }, agent)).toBe(false)
})

test('a preview has at most 220 characters and cuts none apart', () => {
  expect(previewOfDescription('')).toBeNull()
  expect(previewOfDescription('short')).toBe('short')
  expect(previewOfDescription('x'.repeat(221))).toBe('x'.repeat(220))
  expect(previewOfDescription('💥'.repeat(300))).toBe('💥'.repeat(220))
})
