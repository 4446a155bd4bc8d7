import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeSetIsRight } from '../../kit/invariants.ts'
import { waitFor } from '../../kit/programs.ts'
import type { HarnessDriver } from './drivers.ts'
import {
  dataOf,
  ended,
  newAgent,
  plays,
  says,
  asked,
  successorOf,
  withTools,
  type EndedRun,
  type Stage,
  type StagedAgent,
} from './stage.ts'

/** Tests what every harness does alike. */
export function shortCases(stageOf: () => Stage, driver: HarnessDriver): void {
  workCases(stageOf, driver)
  gateCases(stageOf, driver)
}

function workCases(stageOf: () => Stage, { tellsUsage, shell }: HarnessDriver): void {
  test('what it says, calls and gets are events of the run; its file is in the change-set; its svc is its own', async () => {
    const stage = stageOf()
    const agent = await newAgent(stage, 'Maker')
    const commands = 'echo made > made.txt; svc agent get @maker > /dev/null && echo seen'
    await says(stage, [
      { text: 'I write it.', tool: shell(commands), usage: { input: 300, output: 30 } },
      { text: 'The file is there.', usage: { input: 400, output: 40 } },
    ])
    const { run, events, sessionId } = await plays(stage, agent, { prompt: 'Make a file.' })
    expect(sessionId).toEqual(expect.stringMatching(/^[\w-]{8,}$/))
    const [request] = await asked(stage)
    expect(request).toContain('You run unattended, as an agent of svc')
    expect(
      dataOf(events, 'text')
        .map(({ text }) => text)
        .join(''),
    ).toBe('I write it.The file is there.')
    const [call] = dataOf(events, 'tool_call')
    expect(call).toMatchObject({ name: 'Bash', input: { command: commands } })
    expect(dataOf(events, 'tool_result')).toMatchObject([
      { toolCallId: call!['toolCallId'], isError: false, output: expect.stringContaining('seen') },
    ])
    const used = dataOf(events, 'usage').at(-1)
    if (tellsUsage) expect(used).toMatchObject({ inputTokens: 700, outputTokens: 70 })
    else expect(used).toBeUndefined()
    expect(dataOf(events, 'result')).toMatchObject([{ text: 'The file is there.', isError: false }])
    expect(run).toMatchObject({ exitReason: 'completed', toolCallCount: 1, harness: { id: stage.driver.harness } })
    const changeSet = await stage.api.changeSet(run.id)
    expect(changeSet.files).toMatchObject([{ path: 'made.txt', status: 'added', additions: 1 }])
    changeSetIsRight(agent.folder, changeSet)
  })

  test('cancelled in a tool call, nothing of it lives, nor of what it started in sessions of their own', async () => {
    const stage = stageOf()
    const agent = await newAgent(stage, 'Stopped')
    await says(stage, [
      { tool: shell('touch begun; (setsid sleep 600 &) ; tail -f /dev/null') },
      { text: 'Not reached.' },
    ])
    const runId = await stage.api.startRun(agent.id, 'Wait.')
    await waitFor(() => existsSync(join(agent.folder, 'begun')), 'the tool runs', { ms: 90_000 })
    await stage.api.cancel(runId)
    expect((await ended(stage, runId, 'interrupted')).run.status).toBe('cancelled')
  })
}

/** Tests that nothing is called which may not be. */
function gateCases(stageOf: () => Stage, driver: HarnessDriver): void {
  approvedCase(stageOf, driver)
  if (!driver.holdsStrict) strictCase(stageOf)
}

/** Tests what a person's answer is worth, in two runs. */
export function approvedCase(stageOf: () => Stage, driver: HarnessDriver): void {
  test('a call that is allowed is made, one that is denied is not, and one that is asked is made in the same session once a person has approved it', async () => {
    const stage = stageOf()
    const { agent, first, approval } = await asksOnce(stage, driver)
    const { shell, tellsUsage } = driver
    await says(stage, [
      { text: 'Thank you.', tool: shell(asking), usage: { input: 300, output: 30 } },
      { text: 'Shipped.', usage: { input: 400, output: 40 } },
    ])
    await stage.api.insist(`/approvals/${approval.id}/approve`)
    const after = await ended(stage, await successorOf(stage, first.run.id), 'completed')
    expect(decisionsOf(after)).toEqual([`allow approval:${approval.id}`])
    expect(dataOf(after.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
    expect(dataOf(after.events, 'result')).toMatchObject([{ text: 'Shipped.', isError: false }])
    const used = dataOf(after.events, 'usage').at(-1)
    if (tellsUsage) expect(used).toMatchObject({ inputTokens: 700, outputTokens: 70 })
    else expect(used).toBeUndefined()
    expect(madeIn(agent)).toEqual(['made.txt', 'shipped'])
  })
}

export const asking = 'mkdir shipped'
const denying = 'touch denied.txt'
/**
 * Not by `touch`, which closes all that it has of its terminal a moment before it exits: Qwen hangs the terminal up then, and says one
 * time in five that a signal ended the command.
 */
export const making = 'truncate -s 0 made.txt'
export const madeIn = ({ folder }: StagedAgent) =>
  ['made.txt', 'denied.txt', 'shipped'].filter((name) => existsSync(join(folder, name)))
export const decisionsOf = ({ events }: EndedRun) =>
  dataOf(events, 'permission').map(({ decision, rule }) => [decision, rule].join(' '))

/**
 * Plays a run until it asks a person: its model has a call of its svc, one allowed by a rule, and one denied before. `isBrief`: the
 * first of them is left out.
 */
export async function asksOnce(
  stage: Stage,
  { program, holdsStrict, shell }: HarnessDriver,
  { isBrief = false, runtime = {}, ...fields }: { isBrief?: boolean; runtime?: object; identityMd?: string } = {},
) {
  const denied = holdsStrict ? { defaultMode: 'strict' } : { deny: [`Bash(${denying})`] }
  const tools = { allow: [`Bash(${making})`], ask: ['Bash(mkdir:*)'], ...denied }
  const config = { permissions: { tools }, runtime }
  const agent = await newAgent(stage, `Careful ${program}`, { ...fields, config })
  const commands = [...(isBrief ? [] : [`svc agent get @careful-${program}`]), making, denying, asking]
  const steps = commands.map((command, index) => ({ text: `Step ${index}.`, tool: shell(command) }))
  await says(stage, [...steps, { text: 'Not reached.' }])
  const first = await plays(stage, agent, { prompt: 'Ship it.', exitReason: 'approval_requested' })
  expect(first.run).toMatchObject({ harness: { id: stage.driver.harness } })
  expect(first.sessionId).toEqual(expect.stringMatching(/^[\w-]{8,}$/))
  const texts = dataOf(first.events, 'text').map(({ text }) => text)
  expect(texts.join('')).toBe(steps.map(({ text }) => text).join(''))
  expect(dataOf(first.events, 'tool_call')).toMatchObject(
    commands.map((command) => ({ name: 'Bash', input: { command } })),
  )
  const whatDenies = holdsStrict ? '' : `Bash(${denying})`
  expect(decisionsOf(first)).toEqual([
    ...(isBrief ? [] : ['allow svc']),
    `allow Bash(${making})`,
    `deny ${whatDenies}`,
    'ask Bash(mkdir:*)',
  ])
  expect(dataOf(first.events, 'permission').at(-1)).toMatchObject({ ask: { toolArgs: { command: asking } } })
  const results = dataOf(first.events, 'tool_result')
  const allowed = [
    ...(isBrief ? [] : [{ isError: false, output: expect.stringContaining('Careful') }]),
    { isError: false },
  ]
  expect(results.slice(0, allowed.length)).toMatchObject(allowed)
  expect((await asked(stage))[0]).toContain('You run unattended, as an agent of svc')
  expect(results[allowed.length]).toMatchObject({ isError: true })
  expect((await asked(stage)).at(-1)).toMatch(/was denied/)
  expect(madeIn(agent)).toEqual(['made.txt'])
  const { data } = await stage.api.call<{ data: { id: string; runId: string }[] }>('GET', '/approvals')
  const [approval] = data.filter((each) => each.runId === first.run.id)
  expect(approval).toMatchObject({
    trigger: 'tool_permission',
    gatedThing: { name: 'Bash', safeSummary: `Bash: ${asking}` },
  })
  return { agent, first, approval: approval! }
}

function strictCase(stageOf: () => Stage): void {
  test('in the mode strict, which it cannot hold, it does not start', async () => {
    const stage = stageOf()
    const agent = await newAgent(stage, 'Strict', withTools({ defaultMode: 'strict', allow: ['Bash(echo made:*)'] }))
    const { run } = await plays(stage, agent, { exitReason: 'harness_start_failed' })
    expect(run.errorMessage).toContain('strict')
  })
}
