import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { createCatalog, loadCatalog, chooseHarness } from '../../catalog/catalog.ts'
import { admit, type WakeFacts } from './admission.ts'

const agent = { status: 'active', deletedAt: null, name: 'A' } as const
const workspace = { agentsPaused: false, status: 'active', cloudEnabled: true, isBillingLocked: false } as const
const task = {
  key: 'ABC-1',
  isFinished: false,
  startsLater: false,
  hasOpenBlocker: false,
  openHold: null,
  isOthers: false,
}
const facts = (changes: Partial<WakeFacts> = {}): WakeFacts => ({
  agent,
  workspace,
  environment: 'device',
  task: null,
  folder: null,
  cloudEnabled: false,
  isTimerInVain: false,
  isUnwantedHook: false,
  spentBudget: null,
  sameQueuedRunId: null,
  ...changes,
})

describe('what a wake becomes', () => {
  it.each([
    ['an active agent', facts(), { kind: 'admit' }],
    [
      'a deleted agent',
      facts({ agent: { ...agent, deletedAt: 1 } }),
      { kind: 'not_dispatched', reason: 'agent_tombstoned' },
    ],
    [
      'a hook that is not wanted',
      facts({ isUnwantedHook: true }),
      { kind: 'not_dispatched', reason: 'route_gate_declined' },
    ],
    [
      'a timer of an agent whose tasks all wait',
      facts({ isTimerInVain: true }),
      { kind: 'not_dispatched', reason: 'timer_all_tasks_hitl_paused' },
    ],
    [
      'an idle agent',
      facts({ agent: { ...agent, status: 'idle' } }),
      { kind: 'not_dispatched', reason: 'agent_inactive' },
    ],
    [
      'a paused workspace',
      facts({ workspace: { ...workspace, agentsPaused: true } }),
      { kind: 'not_dispatched', reason: 'workspace_agents_paused' },
    ],
    [
      'an archived workspace, whose agents were paused before',
      facts({ workspace: { ...workspace, agentsPaused: true, status: 'archived' } }),
      {
        kind: 'not_dispatched',
        reason: 'workspace_agents_paused',
        message: 'This workspace is archived, so its agents take no wakes.',
      },
    ],
    ['a spent budget', facts({ spentBudget: 'agent' }), { kind: 'not_dispatched', reason: 'budget_blocked' }],
    ['a spent budget of all', facts({ spentBudget: 'workspace' }), { reason: 'budget_blocked' }],
    ['a removed folder', facts({ folder: 'missing' }), { kind: 'not_dispatched', reason: 'folder_bind_failed' }],
    [
      'a cloud agent where cloud runs are off',
      facts({ environment: 'cloud' }),
      { kind: 'declined', exitReason: 'cloud_disabled' },
    ],
    [
      'a cloud agent of a workspace where cloud runs are off',
      facts({ environment: 'cloud', cloudEnabled: true, workspace: { ...workspace, cloudEnabled: false } }),
      { kind: 'declined', exitReason: 'cloud_disabled', message: 'Cloud runs are off in this workspace.' },
    ],
    ['a cloud agent where cloud runs are on', facts({ environment: 'cloud', cloudEnabled: true }), { kind: 'admit' }],
    [
      'a locked company',
      facts({ workspace: { ...workspace, isBillingLocked: true } }),
      { kind: 'declined', exitReason: 'billing_locked' },
    ],
    ['a task to work on', facts({ task }), { kind: 'admit' }],
    ['a finished task', facts({ task: { ...task, isFinished: true } }), { reason: 'task_already_finished' }],
    ['a blocked task', facts({ task: { ...task, hasOpenBlocker: true } }), { reason: 'task_blocked_dependency' }],
    ['a task for later', facts({ task: { ...task, startsLater: true } }), { reason: 'task_not_started' }],
    ["another's task", facts({ task: { ...task, isOthers: true } }), { reason: 'task_unassigned' }],
    [
      'a task that waits for a person',
      facts({ task: { ...task, openHold: { kind: 'question', id: idFrom('qst_1') } } }),
      { reason: 'task_hitl_open', blockedBy: { kind: 'question', id: 'qst_1' } },
    ],
    [
      'a wake that adds nothing',
      facts({ sameQueuedRunId: idFrom<RunId>('run_1') }),
      { kind: 'coalesced', intoRunId: 'run_1' },
    ],
  ])('%s', (_name, given, expected) => {
    expect(admit(given)).toMatchObject(expected)
  })

  it('says first what cannot be helped by waiting', () => {
    const dead = facts({ agent: { ...agent, deletedAt: 1, status: 'idle' }, sameQueuedRunId: idFrom<RunId>('run_1') })
    expect(admit(dead)).toMatchObject({ reason: 'agent_tombstoned' })
  })
})

it('derives the harness from the model when none is set', () => {
  const catalog = loadCatalog(null)
  expect(chooseHarness('command', 'gpt-5', catalog)).toBe('command')
  expect(chooseHarness(null, null, catalog)).toBe('claude')
  expect(chooseHarness(null, 'claude-opus-4-5', catalog)).toBe('claude')
  expect(chooseHarness(null, 'gpt-5.1-codex', catalog)).toBe('codex')
  expect(chooseHarness(null, 'composer-1', catalog)).toBe('cursor')
  expect(chooseHarness(null, 'mistral/large', catalog)).toBe('opencode')
  // The catalog knows better than the model's name.
  const house = createCatalog([{ id: 'gpt-house', aliases: [], harness: 'opencode', efforts: [], price: null }])
  expect(chooseHarness(null, 'gpt-house', house)).toBe('opencode')
  expect(chooseHarness(null, 'gpt-house', catalog)).toBe('codex')
})
