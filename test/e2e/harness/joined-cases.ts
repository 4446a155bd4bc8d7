import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import type { HarnessDriver } from './drivers.ts'
import { asking, asksOnce, decisionsOf, madeIn, making } from './short-cases.ts'
import { asked, dataOf, ended, newAgent, requestsOf, says, successorOf, type Stage } from './stage.ts'

// Several cases of the table in few runs, for the short form: each start of a program takes a second or more of a processor.

/** For a harness whose starts take long: recordings show how its session is gone on with, and others have an svc of their own. */
export function askedCase(stageOf: () => Stage, driver: HarnessDriver): void {
  test('what it may do is done, and a call that is asked ends the run with the question and is not made', async () => {
    await asksOnce(stageOf(), driver, { isBrief: true })
  })
}

/** For a harness whose turns svc counts. */
export function alwaysCase(stageOf: () => Stage, driver: HarnessDriver): void {
  test('a call that is allowed is made, one that is denied is not, and one that is asked is made in the same session once a person has approved it for always, then again unasked, and the run is stopped past its limit of turns', async () => {
    const stage = stageOf()
    const { agent, first, approval } = await asksOnce(stage, driver, { runtime: { maxTurns: 5 } })
    await says(stage, [{ tool: driver.shell(asking) }], { loop: true })
    await stage.api.insist(`/approvals/${approval.id}/approve`, { appliedScope: 'always' })
    const after = await ended(stage, await successorOf(stage, first.run.id), 'budget_exceeded')
    expect(decisionsOf(after).slice(0, 2)).toEqual([`allow approval:${approval.id}`, `allow Bash(${asking})`])
    expect(dataOf(after.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
    expect(madeIn(agent)).toEqual(['made.txt', 'shipped'])
    // It is there already, so the call was made.
    expect(dataOf(after.events, 'tool_result')[1]?.['output']).toContain('File exists')
    expect(after.run.errorMessage).toContain('5')
    expect(after.run.toolCallCount).toBeLessThanOrEqual(6)
  })
}

/** For a harness whose session takes a changed AGENT.md, and which goes on with the backup model by itself. */
export function answeredCase(stageOf: () => Stage, driver: HarnessDriver): void {
  test('a call that is allowed is made, one that is denied is not, and one that is asked is made in the same session once a person has approved it; a question stops that run, and its answer wakes one that goes on under a changed AGENT.md, and on the backup model when the provider is overloaded', async () => {
    const { shell, models, backupBy, keepsInstructions } = driver
    expect([backupBy, keepsInstructions]).toEqual(['itself', false])
    const stage = stageOf()
    const { model, backupModel } = models!
    const more = { runtime: { model, backupModel }, identityMd: 'You are Ada of the harbour.' }
    const { agent, first, approval } = await asksOnce(stage, driver, more)
    expect((await asked(stage))[0]).toContain('You are Ada of the harbour.')

    await says(stage, [
      { text: 'Thank you.', tool: shell(asking) },
      { text: 'I ask.', tool: shell('svc question ask "Which colour?"') },
      { hang: true },
    ])
    await stage.api.insist(`/approvals/${approval.id}/approve`)
    const second = await ended(stage, await successorOf(stage, first.run.id), 'question_asked')
    expect(decisionsOf(second)).toEqual([`allow approval:${approval.id}`, 'allow svc'])
    expect(dataOf(second.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
    expect(madeIn(agent)).toEqual(['made.txt', 'shipped'])

    const { data } = await stage.api.call<{ data: { id: string; runId: string }[] }>('GET', '/questions')
    const question = data.find(({ runId }) => runId === second.run.id)
    await stage.api.call('PUT', `/agents/${agent.id}/identity/agent-md`, { agentMd: 'You are Bob of the hills.' })
    rmSync(join(agent.folder, 'made.txt'))
    const half = { text: 'Half.', tool: shell(making), usage: { input: 300, output: 30 } }
    const failures = Array.from({ length: 20 }, () => ({ error: { status: 529, retryAfter: 0 } }))
    const whole = { text: 'All of it is done.', usage: { input: 400, output: 40 } }
    await says(stage, [half, ...failures], { models: { [backupModel]: whole } })
    await stage.api.insist(`/questions/${question!.id}/answer`, { answer: { text: 'blue, please', selected: null } })
    const after = await ended(stage, await successorOf(stage, second.run.id), 'completed')
    expect(dataOf(after.events, 'session')[0]).toMatchObject({ sessionId: first.sessionId, resumed: true })
    expect(dataOf(after.events, 'result')).toMatchObject([{ text: 'All of it is done.' }])
    expect(dataOf(after.events, 'usage').at(-1)).toMatchObject({ inputTokens: 700, outputTokens: 70 })
    const [request] = await asked(stage)
    for (const text of ['I ask.', 'blue, please', 'You are Bob of the hills.']) expect(request).toContain(text)
    expect(request).not.toContain('You are Ada of the harbour.')
    // The call that asked has its own result; that the run ended then looks like no refusal.
    expect(request).toContain(`[svc: waiting for ${question!.id}; stop now]`)
    expect(request).not.toMatch(/doesn't want to proceed|interrupted by user/)
    expect(dataOf(second.events, 'tool_result').at(-1)).toMatchObject({ isError: false })
    const used = (await requestsOf(stage)).map(({ body }) => body['model'])
    expect([used[0], used.at(-1)]).toEqual([model, backupModel])
    // What was done before the failures is not done again.
    expect(dataOf(after.events, 'tool_call')).toMatchObject([{ input: { command: making } }])
    expect(madeIn(agent)).toEqual(['made.txt', 'shipped'])
  })
}

export function endsCase(stageOf: () => Stage, { shell }: HarnessDriver): void {
  test('of runs in a tool call one is cancelled, of one the harness is killed and of one the run host: each ends as that, and nothing of them lives', async () => {
    const stage = stageOf()
    const { api, device } = stage
    const hold = shell('touch begun; (setsid sleep 600 &) ; tail -f /dev/null')
    await says(stage, [{ tool: hold }], { loop: true })
    const start = async (name: string) => {
      const { id, folder } = await newAgent(stage, name)
      const runId = await api.startRun(id, 'Hold the line.')
      return { folder, runId }
    }
    await api.call('PATCH', `/devices/${device.identity.deviceId}`, { maxConcurrentRuns: 3 })
    const runs = await Promise.all(['Stopped', 'Killed', 'Orphaned'].map(start))
    for (const { folder } of runs)
      await waitFor(() => existsSync(join(folder, 'begun')), 'the tool runs', { ms: 90_000 })
    const [stopped, killed, orphaned] = runs.map(({ runId }) => runId) as [string, string, string]
    process.kill(-(await device.hostOf(killed)).harness!.pid, 'SIGKILL')
    process.kill((await device.hostOf(orphaned)).pid, 'SIGKILL')
    await api.cancel(stopped)
    expect((await ended(stage, stopped, 'interrupted')).run.status).toBe('cancelled')
    await ended(stage, killed, 'error')
    await ended(stage, orphaned, 'crashed')
  })
}
