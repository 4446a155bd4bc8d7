import { idFrom, type AgentRef, type TaskId } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { taskStatuses } from '../../../shared/api/task-fields.ts'
import { taskRow } from '../../../test/store/seed.ts'
import { conditionsOf, nextTaskStatuses, parentRefusal, transitionRefusal, wakeAtOf, taskWithStatus } from './rules.ts'

const now = 1_000
const task = taskRow(idFrom('w'))

test('no status is left out of the table, and none leads to itself', () => {
  for (const from of taskStatuses) {
    expect(nextTaskStatuses(from)).not.toContain(from)
    for (const to of taskStatuses)
      expect(transitionRefusal(from, to, 'x')).toBe(
        nextTaskStatuses(from).includes(to) ? null : 'invalid_task_transition',
      )
  }
  expect(transitionRefusal('done', 'open', null)).toBe('reopen_reason_required')
  expect(transitionRefusal('cancelled', 'open', ' \n')).toBe('reopen_reason_required')
  expect(transitionRefusal('done', 'cancelled', null)).toBe('invalid_task_transition')
})

test('a move sets its time; only the first start counts', () => {
  const started = taskWithStatus(task, 'in_progress', now)
  expect(started).toMatchObject({ status: 'in_progress', startedAt: now, updatedAt: now })
  expect(taskWithStatus(started, 'in_progress', now + 1).startedAt).toBe(now)
  expect(taskWithStatus({ ...task, wakeAt: 5 }, 'in_progress', now).wakeAt).toBeNull()
  const done = taskWithStatus(started, 'done', now + 2)
  expect(done).toMatchObject({ completedAt: now + 2, cancelledAt: null })
  expect(taskWithStatus(done, 'open', now + 3)).toMatchObject({ completedAt: null, cancelledAt: null, startedAt: now })
})

test('a parent is neither the task, nor below it, nor too deep', () => {
  const put = (taskId: TaskId | null, levels: number, ancestors: string[]) =>
    parentRefusal({ taskId, levels, parentId: idFrom('p'), ancestors })
  expect(put(idFrom<TaskId>('p'), 1, [])).toBe('parent_task_cycle')
  expect(put(idFrom<TaskId>('t'), 1, ['x', 't'])).toBe('parent_task_cycle')
  expect(put(null, 1, ['a', 'b'])).toBeNull()
  expect(put(null, 1, ['a', 'b', 'c'])).toBe('parent_task_depth_exceeded')
  expect(put(idFrom<TaskId>('t'), 3, [])).toBeNull()
  expect(put(idFrom<TaskId>('t'), 4, [])).toBe('parent_task_depth_exceeded')
})

test('a start is waited for only while somebody is to begin', () => {
  const waiting = {
    assigneeAgentRef: idFrom<AgentRef>('agt_1'),
    startAt: now + 1,
    status: 'open',
    archivedAt: null,
  } as const
  expect(wakeAtOf(waiting, now)).toBe(now + 1)
  for (const other of [{ assigneeAgentRef: null }, { startAt: null }, { startAt: now }, { archivedAt: 1 }])
    expect(wakeAtOf({ ...waiting, ...other }, now)).toBeNull()
  expect(wakeAtOf({ ...waiting, status: 'in_progress' }, now)).toBeNull()
})

test('conditions are named once each', () => {
  const facts = { hasOpenBlocker: false, openHolds: [], isRunning: false, now }
  expect(conditionsOf(task, facts)).toEqual([])
  const holds = (['question', 'approval', 'question'] as const).map((kind) => ({ kind }))
  const scheduled = { ...task, assigneeAgentRef: idFrom<AgentRef>('agt_1'), startAt: now + 1 }
  expect(conditionsOf(scheduled, { hasOpenBlocker: true, openHolds: holds, isRunning: true, now })).toEqual([
    { type: 'blocked', reason: 'dependency' },
    { type: 'blocked', reason: 'approval' },
    { type: 'blocked', reason: 'question' },
    { type: 'active_run' },
    { type: 'scheduled', startAt: now + 1 },
  ])
  expect(conditionsOf({ ...scheduled, status: 'done' }, facts)).toEqual([])
  expect(conditionsOf({ ...scheduled, assigneeAgentRef: null }, facts)).toEqual([])
  expect(conditionsOf({ ...scheduled, archivedAt: 1 }, facts)).toEqual([])
})
