import { agentCaller, personCaller } from '../../../test/kit/callers.ts'
import { idFrom, type DeviceRef, type PersonUuid } from '../../../shared/lib/ids.ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentStatuses } from '../../../shared/api/agents.ts'
import type { Caller } from '../../http/callers.ts'
import {
  changedKeys,
  configOf,
  freeHandle,
  isHandleOf,
  isReportingCycle,
  isAgentVisible,
  mayMove,
  mayUseFolder,
  nextAgentStatuses,
  ownsOrAdministersAgent,
  slugOf,
  viewerOfAgents,
  withConfig,
} from './rules.ts'
import type { AgentRow } from './store.ts'

const agent = agentCaller()

const row: AgentRow = {
  id: idFrom('agt_1'),
  uuid: idFrom('u1'),
  workspaceId: idFrom('w'),
  handle: 'a',
  name: 'A',
  role: 'agent',
  description: null,
  status: 'active',
  model: 'm',
  backupModel: null,
  reasoningEffort: null,
  sandboxSize: null,
  harness: null,
  fallbackHarness: null,
  environment: 'device',
  maxTurns: null,
  protocol: null,
  skillFolders: null,
  command: null,
  defaultFolderId: null,
  defaultRepoId: null,
  ownerUuid: idFrom<PersonUuid>('me'),
  visibility: 'private',
  reportingToUuid: null,
  wakeOnAssignment: true,
  wakeOnHook: true,
  toolPermissionMode: 'ask',
  tools: { allow: ['Read'], ask: [], deny: [] },
  capabilities: [],
  agentMd: '',
  agentMdHash: '',
  agentMdByUuid: null,
  spentNanoUsd: 0,
  spentMonth: null,
  monthlyBudgetCents: null,
  transferredAt: null,
  sessionsResetAt: null,
  lastRunAt: null,
  tokenGeneration: 1,
  deletedAt: null,
  version: 1,
  createdAt: 0,
  updatedAt: 0,
}

describe('the status', () => {
  it('never leaves `terminated`, reaches every other status, and goes from idle to active only through running', () => {
    for (const from of agentStatuses) expect(mayMove(from, from)).toBe(true)
    expect(nextAgentStatuses('terminated')).toEqual([])
    expect(mayMove('idle', 'active')).toBe(false)
    expect(mayMove('idle', 'running') && mayMove('running', 'active')).toBe(true)
  })
})

// Any code point: fast-check's own strings of those cost a second to prepare.
const names = fc
  .array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength: 40 })
  .map((points) => String.fromCodePoint(...points))

describe('handles', () => {
  it('are made of letters, digits and single hyphens, whatever the name', () => {
    fc.assert(
      fc.property(names, (name) => {
        const slug = slugOf(name)
        expect(slug).toMatch(/^([a-z0-9]+(-[a-z0-9]+)*)?$/)
        expect(slug.length).toBeLessThanOrEqual(60)
        expect(slugOf(slug)).toBe(slug)
      }),
    )
    expect(slugOf('Crème Brûlée & Co.')).toBe('creme-brulee-co')
    expect(slugOf('Øre-Ærø Straße')).toBe('ore-aero-strasse')
    expect(slugOf('日本')).toBe('')
  })

  it('take the first free number, and a rename to the same slug keeps them', () => {
    expect(freeHandle('a', new Set())).toBe('a')
    expect(freeHandle('a', new Set(['a', 'a-3']))).toBe('a-2')
    expect(freeHandle('a', new Set(['a', 'a-2', 'a-3']))).toBe('a-4')
    expect(freeHandle('me', new Set())).toBe('me-2')
    expect(isHandleOf('a-2', 'a')).toBe(true)
    expect(isHandleOf('a', 'a')).toBe(true)
    expect(isHandleOf('a-b', 'a')).toBe(false)
    expect(isHandleOf('ab', 'a')).toBe(false)
  })
})

describe('visibility and ownership', () => {
  it('a private agent is visible to its owner, admins and itself', () => {
    expect(isAgentVisible(row, viewerOfAgents(personCaller('member')))).toBe(true)
    expect(isAgentVisible(row, viewerOfAgents(personCaller('member', 'you')))).toBe(false)
    expect(isAgentVisible(row, viewerOfAgents(personCaller('admin', 'you')))).toBe(true)
    expect(isAgentVisible(row, viewerOfAgents(agent))).toBe(false)
    expect(isAgentVisible({ ...row, id: idFrom('agt_me') }, viewerOfAgents(agent))).toBe(true)
    expect(isAgentVisible({ ...row, ownerUuid: null }, viewerOfAgents(personCaller('member')))).toBe(false)
    expect(isAgentVisible({ ...row, visibility: 'company' }, viewerOfAgents(agent))).toBe(true)
  })

  it('its folder is set by its owner or an admin, and must be one they may use', () => {
    expect(ownsOrAdministersAgent(row, agent)).toBe(false)
    const use = (caller: Caller, createdBy: PersonUuid, defaultDevice: string | null = null) =>
      mayUseFolder({
        folder: { createdByUuid: createdBy, device: idFrom('d') },
        agent: row,
        caller,
        defaultDevice: idFrom<DeviceRef>(defaultDevice),
      })
    expect(use(personCaller('member'), idFrom('me'))).toBe(true)
    expect(use(personCaller('member'), idFrom('you'))).toBe(false)
    expect(use(personCaller('member'), idFrom('you'), 'd')).toBe(true)
    expect(use(personCaller('member', 'you'), idFrom('you'))).toBe(false)
    expect(use(personCaller('owner', 'you'), idFrom('them'))).toBe(true)
    expect(use(agent, idFrom('me'))).toBe(false)
  })

  it('a manager that is the agent itself or reports to it makes a cycle', () => {
    expect(isReportingCycle(idFrom('a'), [{ uuid: idFrom('b') }, { uuid: idFrom('a') }])).toBe(true)
    expect(isReportingCycle(idFrom('a'), [{ uuid: idFrom('b') }])).toBe(false)
  })
})

describe('settings', () => {
  it('that are written back unchanged change nothing', () => {
    expect(changedKeys(row, withConfig(row, configOf(row)))).toEqual([])
    expect(changedKeys(row, withConfig(row, {}))).toEqual([])
  })

  it('change only for keys that are present: null inherits, absent keys stay', () => {
    const after = withConfig(row, {
      runtime: { model: null, triggers: { wakeOnHook: false } },
      permissions: { tools: { deny: ['Bash'] } },
    })
    expect(after).toMatchObject({ model: null, wakeOnAssignment: true, wakeOnHook: false, toolPermissionMode: 'ask' })
    expect(after.tools).toEqual({ allow: ['Read'], ask: [], deny: ['Bash'] })
    const keys = changedKeys(row, after)
    expect(keys.toSorted()).toEqual(['permissions.tools.deny', 'runtime.model', 'runtime.triggers.wakeOnHook'])
  })
})
