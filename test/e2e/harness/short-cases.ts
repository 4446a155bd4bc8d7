import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeSetIsRight } from '../../kit/invariants.ts'
import { waitFor } from '../../kit/programs.ts'
import type { HarnessDriver } from './drivers.ts'
import { dataOf, ended, newAgent, plays, says, asked, successorOf, withTools, type Stage } from './stage.ts'

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
export function gateCases(stageOf: () => Stage, driver: HarnessDriver): void {
  askCase(stageOf, driver)
  strictCase(stageOf, driver)
}

/** Tests what each run of the tests shows of every harness. */
export function askCase(stageOf: () => Stage, { shell }: HarnessDriver): void {
  test('a call that must be asked: a person approves it, and the woken run makes it in the same session', async () => {
    const stage = stageOf()
    const { api } = stage
    const agent = await newAgent(stage, 'Careful', withTools({ ask: ['Bash'] }))
    const command = 'echo shipped > shipped.txt'
    const call = shell(command)
    await says(stage, [{ text: 'I ship it.', tool: call }, { text: 'Not reached.' }])
    const first = await plays(stage, agent, { prompt: 'Ship it.', exitReason: 'approval_requested' })
    expect(dataOf(first.events, 'permission')).toMatchObject([
      { name: 'Bash', decision: 'ask', ask: { toolArgs: { command } } },
    ])
    expect(existsSync(join(agent.folder, 'shipped.txt'))).toBe(false)
    const { data } = await api.call<{ data: { id: string; runId: string }[] }>('GET', '/approvals')
    const [approval] = data.filter((each) => each.runId === first.run.id)
    expect(approval).toMatchObject({
      trigger: 'tool_permission',
      gatedThing: { name: 'Bash', safeSummary: `Bash: ${command}` },
    })
    await says(stage, [{ text: 'Thank you.', tool: call }, { text: 'Shipped.' }])
    await api.insist(`/approvals/${approval!.id}/approve`)
    const after = await ended(stage, await successorOf(stage, first.run.id), 'completed')
    expect(dataOf(after.events, 'permission')).toMatchObject([
      { name: 'Bash', decision: 'allow', rule: `approval:${approval!.id}` },
    ])
    expect(dataOf(after.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
    expect(readFileSync(join(agent.folder, 'shipped.txt'), 'utf8')).toBe('shipped\n')
  })
}

function strictCase(stageOf: () => Stage, { holdsStrict, shell }: HarnessDriver): void {
  test('in the mode strict it makes what a rule allows and calls its svc, or does not start', async () => {
    const stage = stageOf()
    const agent = await newAgent(stage, 'Strict', withTools({ defaultMode: 'strict', allow: ['Bash(echo made:*)'] }))
    const calls = ['echo made', 'svc agent get @strict', 'touch not-allowed.txt']
    await says(stage, [{ tools: calls.map(shell) }, { text: 'That was it.' }])
    if (!holdsStrict) {
      const { run } = await plays(stage, agent, { exitReason: 'harness_start_failed' })
      expect(run.errorMessage).toContain('strict')
      return
    }
    const { events } = await plays(stage, agent, {})
    // Some ask about all calls of a turn at once.
    const decisions = dataOf(events, 'permission').map(({ decision, rule }) => [decision, rule].join(' '))
    expect(decisions.toSorted()).toEqual(['allow Bash(echo made:*)', 'allow svc', 'deny '])
    const outputs = dataOf(events, 'tool_result').map(({ output }) => String(output))
    expect(outputs.filter((output) => output.includes('Strict'))).toHaveLength(1)
    expect(existsSync(join(agent.folder, 'not-allowed.txt'))).toBe(false)
  })
}
