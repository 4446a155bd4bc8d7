import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Answer } from './api-server.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

const id = 'flr_9mZ2pL5yRd7Vf0Jg'
let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`
const step = (stepOrdinal: number, more: object = {}) => ({
  stepOrdinal,
  state: 'dispatched',
  label: `step ${stepOrdinal}`,
  run: { id: `run_${stepOrdinal}`, status: 'running' },
  agent: { handle: '@ada' },
  error: null,
  pendingApproval: null,
  dispatchedAt: at(0),
  advancedAt: null,
  ...more,
})
const run = (steps: object[], more: object = {}): Answer => ({
  body: { id, workflow: 'review', status: 'running', log: [], steps, startedAt: at(0), completedAt: null, ...more },
})
const done = { state: 'done', advancedAt: at(3) }

/** The run as it is read, one state after another; the last one stays. */
const inTurn = (states: readonly Answer[]) => (_: unknown, before: number) =>
  states[Math.min(before, states.length - 1)]!

test('a run of a workflow is shown step by step, with what is asked and what it logs, to its end', async () => {
  const question = { id: 'qst_1', prompt: 'Which\nbranch?', options: [{ key: 'm', label: 'main' }] }
  const approval = { id: 'apr_1', prompt: 'Bash: git push' }
  const env = await home.inRun(
    inTurn([
      run([step(0)], { log: ['begins'] }),
      run([step(0, done), step(1, { pendingApproval: approval })], { log: ['begins', 'planned'] }),
      run([step(0, done), step(1, { ...done, error: { message: 'It broke.' } })], { parkedQuestion: question }),
      run([step(0, done)], { status: 'completed', completedAt: at(9), summary: 'All is reviewed.' }),
    ]),
  )
  const end = await home.svc(['workflow', 'runs', 'watch', id, '-o', 'table'], { env })
  expect(end.stdout.trimEnd().split('\n')).toEqual([
    `${id} · review`,
    '● 0 step 0 @ada   svc run watch run_0',
    '  begins',
    '✓ 0 step 0 @ada 3.0s',
    '● 1 step 1 @ada   svc run watch run_1',
    '? 1 step 1 @ada asks: Bash: git push',
    '  svc approval approve apr_1',
    '  or: svc approval reject apr_1',
    '  planned',
    '✗ 1 step 1 @ada 3.0s: It broke.',
    '? Which branch?',
    '  - main',
    '  svc question answer qst_1 "..."',
    '✓ completed in 9.0s: All is reviewed.',
  ])
  expect(end.status).toBe(0)
})

test('workflow start --wait watches what it started: a failure is its exit status, in a pipe the record is printed', async () => {
  const failed = run([], { status: 'failed', completedAt: at(1), error: { message: 'line 3' } })
  const env = await home.inRun(({ method }) => (method === 'POST' ? { status: 201, body: { id } } : failed))
  const end = await home.svc(['workflow', 'start', 'review', '--input', 'a=b', '--wait'], { env })
  expect([end.status, JSON.parse(end.stdout)]).toMatchObject([6, { id, status: 'failed' }])
  expect(home.api.received[0]!.body).toEqual({ workflow: 'review', input: { a: 'b' } })
})

test('when the time is over the run goes on, and svc says how to come back', async () => {
  const env = await home.inRun(({ method }) => (method === 'POST' ? { status: 201, body: { id } } : run([])))
  const end = await home.svc(['workflow', 'start', 'review', '--wait', '1'], { env })
  expect(end.status).toBe(5)
  expect(end.stderr).toContain(`${id} goes on. Come back with \`svc workflow runs watch ${id}\``)
})
