import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { WorkflowRun } from '../../../shared/api/workflow-fields.ts'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import type { StubStep } from '../../kit/stub-llm.ts'
import { newAgent, says, withTools, type Stage } from './stage.ts'

// A workflow whose steps the real Claude Code does; only its model is scripted, by what was said to it last. A call of a step's agent
// that a person approves is in api/databases/workflow-command-steps.test.ts.

const shell = (command: string) => ({ kind: 'shell', command }) as const

// In the short form workflow-command-steps.test.ts has a gate that may not.
const denial = isLong
  ? "const denied = await gate(['rm', '-r', '.'], { label: 'remove', agent: '@coder' }).catch((error) => error.code)"
  : ''
const source = `export const meta = { name: 'release', title: 'Release', toolPermissionMode: 'full', inputs: [{ key: 'what' }] }
phase('Review')
const { verdict } = await agent('Review ' + input.what, {
  label: 'review',
  agent: '@coder',
  schema: { type: 'object', required: ['verdict'], properties: { verdict: { enum: ['good', 'bad'] } } },
})
const colour = await ask('Which colour?', { options: ['red', 'blue'] })
phase('Ship')
${denial}
const { exitCode } = await gate(['touch', colour + '.txt'], { label: 'ship', agent: '@coder' })
return { verdict, colour, exitCode${isLong ? ', denied' : ''} }
`

const model: readonly (StubStep & { when: string })[] = [
  { when: 'tool_result.*recorded-it', text: 'Reviewed.' },
  {
    when: 'Review the site',
    // The first does not fit the schema, and is refused.
    tool: shell(
      `svc run output --schema output --data '{"verdict":"so-so"}' || svc run output --schema output --data '{"verdict":"good"}' && echo recorded-it`,
    ),
  },
]

const read = ({ api }: Stage, id: string) => api.call<WorkflowRun>('GET', `/workflows/runs/${id}`)
const until = (stage: Stage, id: string, is: (run: WorkflowRun) => boolean, what: string) => {
  let last: WorkflowRun | null = null
  const look = async () => (is((last = await read(stage, id))) ? last : null)
  return waitFor(look, what, { ms: 90_000, atMostMs: 250, about: () => JSON.stringify(last, null, 1) })
}

/** No other run may begin beside it: in the long form the server dies. */
export function workflowCase(stageOf: () => Stage): void {
  test(`a step with a schema, a question in the thread of the task, ${isLong ? 'a gate that may not, and one' : 'and a gate'} that a person approves`, async () => {
    const stage = stageOf()
    const { api } = stage
    const tools = { ask: ['Bash(touch *)'], deny: ['Bash(rm *)'] }
    const { folder } = await newAgent(stage, 'Coder', withTools(tools))
    await says(stage, [], { rules: model })
    await api.insist('/workflows/records', { source })
    const task = await api.insist<{ id: string; key: string }>('/tasks', { title: 'Release the site' })
    const body = { workflow: 'release', input: { what: 'the site' }, taskId: task.key }
    const { id } = await api.insist<{ id: string }>('/workflows/runs', body)

    const asking = await until(stage, id, ({ parkedQuestion }) => parkedQuestion !== null, 'the program asks')
    expect(asking.steps).toMatchObject([
      { label: 'review', phase: 'Review', state: 'done', run: { status: 'succeeded' } },
    ])
    // In the short form `fault/workflows.test.ts` has servers that die under a program.
    if (isLong) {
      await stage.system.server.kill9()
      await stage.system.server.start()
    }
    const { data: comments } = await api.call<{ data: { id: string; body: string }[] }>(
      'GET',
      `/tasks/${task.id}/comments`,
    )
    const thread = comments.find(({ body: said }) => said.includes('Which colour?'))!
    await api.insist(`/tasks/${task.id}/comments`, { content: 'Blue', parentMessageId: thread.id })

    const gated = await until(
      stage,
      id,
      ({ steps }) => steps.at(-1)?.pendingApproval != null && steps.at(-1)?.run?.exitReason === 'approval_requested',
      'the command of a gate is asked',
    )
    expect(gated.steps.at(-1)).toMatchObject({ label: 'ship', phase: 'Ship', state: 'dispatched' })
    expect(existsSync(join(folder, 'blue.txt'))).toBe(false)
    await api.insist(`/approvals/${gated.steps.at(-1)!.pendingApproval!.id}/approve`)
    const done = await until(stage, id, ({ status }) => status !== 'running', 'the program ends')
    expect(done).toMatchObject({ status: 'completed', error: null, task: { id: task.id } })
    expect(JSON.parse(done.summary!)).toEqual({
      verdict: 'good',
      colour: 'blue',
      exitCode: 0,
      ...(isLong && { denied: 'gate_denied' }),
    })
    expect(done.steps.map(({ state, run }) => [state, run?.status])).toEqual([
      ['done', 'succeeded'],
      ...(isLong ? [['done', 'failed']] : []),
      ['done', 'succeeded'],
    ])
    expect(existsSync(join(folder, 'blue.txt'))).toBe(true)
  })
}
