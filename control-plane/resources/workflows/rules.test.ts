import { idFrom, type ActorRef, type AgentRef, type PersonUuid, type WorkflowRunId } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import type { Caller } from '../../http/callers.ts'
import {
  causeOfRun,
  checksStateOf,
  fittingRuns,
  mayCancelWorkflowRun,
  mayChangeWorkflow,
  nextForUnmoved,
  readInput,
  stepStateOf,
  valueOfAnswer,
} from './rules.ts'

const person = (role: 'member' | 'admin') => ({ kind: 'person', personRef: 'usr_1', role }) as unknown as Caller
const agent = { kind: 'agent', agentRef: 'agt_1' } as unknown as Caller

it('a page shows as many runs as it is cheap to read: few of large journals or of many calls, and always one', () => {
  const fits = (runs: readonly { chars: number; calls: number }[]) => {
    const rows = runs.map(({ chars }, at) => ({ id: idFrom<WorkflowRunId>(`flr_${at}`), journalBytes: chars }))
    return fittingRuns(rows, new Map(runs.map(({ calls }, at) => [`flr_${at}`, calls])))
  }
  const megabyte = 1024 * 1024
  const alike = (run: { chars: number; calls: number }) => Array.from({ length: 100 }, () => run)
  expect(fits(alike({ chars: 2_000, calls: 3 }))).toBe(100)
  expect(fits(alike({ chars: 3 * megabyte, calls: 1 }))).toBe(2)
  expect(fits(alike({ chars: 50_000, calls: 1_000 }))).toBe(3)
  expect(fits(alike({ chars: 16 * megabyte, calls: 1_000 }))).toBe(1)
})

it('an agent changes what it wrote, a person all', () => {
  const may = (authorAgentId: string | null) =>
    [person('member'), agent].map((caller) =>
      mayChangeWorkflow({ authorAgentRef: idFrom<AgentRef>(authorAgentId) }, caller),
    )
  expect([may('agt_1'), may('agt_2'), may(null)]).toEqual([
    [true, true],
    [true, false],
    [true, false],
  ])
})

it('whoever started a run cancels it, and admins do', () => {
  const may = (startedBy: string) =>
    [person('member'), person('admin'), agent].map((one) =>
      mayCancelWorkflowRun({ startedByRef: idFrom<ActorRef>(startedBy) }, one),
    )
  expect([may('usr_1'), may('agt_1'), may('usr_2')]).toEqual([
    [true, true, false],
    [false, true, true],
    [false, true, false],
  ])
})

it('a person is behind a run when they both wrote and started it', () => {
  expect([
    causeOfRun(idFrom<PersonUuid>('a'), idFrom<PersonUuid>('a'), false),
    causeOfRun(idFrom<PersonUuid>('a'), idFrom<PersonUuid>('b'), false),
    causeOfRun(idFrom<PersonUuid>('a'), null, false),
  ]).toEqual(['a', null, null])
  expect([causeOfRun(idFrom<PersonUuid>('a'), null, true), causeOfRun(null, null, false)]).toEqual(['a', null])
})

it('the state of a step follows from its times', () => {
  const state = (endedAt: number | null, resumedAt: number | null, advancedAt: number | null) =>
    stepStateOf({ endedAt, resumedAt, advancedAt })
  expect([state(null, null, null), state(1, null, null), state(1, 2, null), state(1, 2, 3)]).toEqual([
    'dispatched',
    'waiting',
    'resumed',
    'done',
  ])
})

it('results that did not reach the program are sent again after 2, 4 and 6 minutes, and at 8 it has stalled', () => {
  const minute = 60_000
  const next = (attempts: number, minutes: number) => nextForUnmoved({ since: 0, attempts, now: minutes * minute })
  expect([next(0, 1.9), next(0, 2), next(1, 3.9), next(1, 4), next(2, 5.9), next(2, 6)]).toEqual([
    'wait',
    'resend',
    'wait',
    'resend',
    'wait',
    'resend',
  ])
  expect([next(3, 7.9), next(3, 8)]).toEqual(['wait', 'stall'])
})

describe('an answer', () => {
  const options = [
    { key: 'a', label: 'First' },
    { key: 'b', label: 'Second' },
  ]
  const value = (
    answerMode: 'free_text' | 'single_select' | 'multi_select',
    text: string | null,
    selected: string[] | null,
  ) => valueOfAnswer({ answerMode, options: answerMode === 'free_text' ? null : options }, { text, selected })

  it('is the text, the key that was chosen, or all of them', () => {
    expect(value('free_text', 'words', null)).toBe('words')
    expect(value('single_select', 'because', ['b'])).toBe('b')
    expect(value('multi_select', null, ['a', 'b'])).toEqual(['a', 'b'])
  })

  it('may name an option in words of a thread; other words stay words', () => {
    expect([value('single_select', ' second ', null), value('single_select', 'A', null)]).toEqual(['b', 'a'])
    expect(value('single_select', 'neither', null)).toBe('neither')
    expect([value('multi_select', 'first', null), value('multi_select', 'neither', null)]).toEqual([['a'], ['neither']])
  })
})

it('inputs are read as they are declared', () => {
  const read = (kind: 'text' | 'number' | 'boolean' | 'task', given: unknown, required = false) =>
    readInput({ key: 'k', label: 'K', kind, required }, given)
  expect([read('number', ' 4 '), read('boolean', 'false'), read('text', 'x'), read('task', 'WEB-1')]).toEqual([
    { value: 4 },
    { value: false },
    { value: 'x' },
    { value: 'WEB-1' },
  ])
  expect([read('text', null), read('number', '')]).toEqual([{ value: null }, { value: null }])
  expect([
    read('text', null, true),
    read('number', 'x'),
    read('number', ' '),
    read('number', Number.POSITIVE_INFINITY),
    read('boolean', 1),
    read('task', 7),
  ]).toEqual(
    [
      'is required',
      'must be a number',
      'must be a number',
      'must be a number',
      'must be true or false',
      'must name a task',
    ].map((message) => ({ key: 'k', message })),
  )
})

it('checks are done when none is pending, and there is one', () => {
  const state = (...all: ('pending' | 'passed' | 'failed')[]) => checksStateOf(all.map((status) => ({ status })))
  expect([state(), state('passed', 'pending'), state('failed', 'pending')]).toEqual([null, null, null])
  expect([state('passed', 'passed'), state('passed', 'failed')]).toEqual(['passed', 'failed'])
})
