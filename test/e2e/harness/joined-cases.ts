import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import type { HarnessDriver } from './drivers.ts'
import { asked, dataOf, ended, newAgent, plays, requestsOf, says, successorOf, type Stage } from './stage.ts'

/** Several cases of the table in few runs, for the short form: each start of a program takes a second or more of a processor. */

/** For a harness whose session takes a changed AGENT.md, and which goes on with the backup model by itself. */
export function answeredCase(
  stageOf: () => Stage,
  { shell, models, backupBy, keepsInstructions }: HarnessDriver,
): void {
  test('a question stops the run; its answer wakes one that goes on with the session, under a changed AGENT.md, and on the backup model when the provider is overloaded', async () => {
    expect([backupBy, keepsInstructions]).toEqual(['itself', false])
    const stage = stageOf()
    const { model, backupModel } = models!
    const config = { runtime: { model, backupModel } }
    const agent = await newAgent(stage, 'Asker', { config, identityMd: 'You are Ada of the harbour.' })
    await says(stage, [{ text: 'I ask.', tool: shell('svc question ask "Which colour?"') }, { hang: true }])
    const first = await plays(stage, agent, { exitReason: 'question_asked' })
    expect((await asked(stage))[0]).toContain('You are Ada of the harbour.')
    const { data } = await stage.api.call<{ data: { id: string; runId: string }[] }>('GET', '/questions')
    const question = data.find(({ runId }) => runId === first.run.id)
    await stage.api.call('PUT', `/agents/${agent.id}/identity/agent-md`, { agentMd: 'You are Bob of the hills.' })
    const failures = Array.from({ length: 20 }, () => ({ error: { status: 529, retryAfter: 0 } }))
    const half = { text: 'Half.', tool: shell('echo half >> done.txt') }
    await says(stage, [half, ...failures], { models: { [backupModel]: { text: 'All of it is done.' } } })
    await stage.api.insist(`/questions/${question!.id}/answer`, { answer: { text: 'blue, please', selected: null } })
    const after = await ended(stage, await successorOf(stage, first.run.id), 'completed')
    expect(dataOf(after.events, 'session')[0]).toMatchObject({ sessionId: first.sessionId, resumed: true })
    expect(dataOf(after.events, 'result')).toMatchObject([{ text: 'All of it is done.' }])
    const [request] = await asked(stage)
    for (const text of ['I ask.', 'blue, please', 'You are Bob of the hills.']) expect(request).toContain(text)
    expect(request).not.toContain('You are Ada of the harbour.')
    const used = (await requestsOf(stage)).map(({ body }) => body['model'])
    expect([used[0], used.at(-1)]).toEqual([model, backupModel])
    expect(readFileSync(join(agent.folder, 'done.txt'), 'utf8')).toBe('half\n')
  })
}

/** Kills the daemon, so it is the last test of its device. */
export function endsCase(stageOf: () => Stage, { shell }: HarnessDriver): void {
  test('of runs in a tool call one is cancelled, of one the harness is killed and of one the run host: each ends as that; the daemon is killed, and the next one sees the fourth to its end', async () => {
    const stage = stageOf()
    const { api, device } = stage
    const wait = (before: string) => ({
      tool: shell(`${before}until [ -e go ]; do sleep 0.1; done; echo went > went.txt; echo It "is" over`),
    })
    // A program may tell its model of a call that lasts before it is over: it is then waited for once more.
    const rules = [
      { when: 'Hold the line', ...wait('touch begun; (setsid sleep 600 &) ; ') },
      { when: 'It is over', text: 'It went.' },
    ]
    await says(stage, [wait('')], { rules, loop: true })
    const start = async (name: string) => {
      const { id, folder } = await newAgent(stage, name)
      const runId = await api.startRun(id, 'Hold the line.')
      return { folder, runId }
    }
    await api.call('PATCH', `/devices/${device.identity.deviceId}`, { maxConcurrentRuns: 4 })
    const runs = await Promise.all(['Stopped', 'Killed', 'Orphaned', 'Adopted'].map(start))
    for (const { folder } of runs)
      await waitFor(() => existsSync(join(folder, 'begun')), 'the tool runs', { ms: 90_000 })
    const [stopped, killed, orphaned, adopted] = runs.map(({ runId }) => runId) as [string, string, string, string]
    await device.kill9()
    process.kill(-(await device.hostOf(killed)).harness!.pid, 'SIGKILL')
    process.kill((await device.hostOf(orphaned)).pid, 'SIGKILL')
    await device.start()
    await api.cancel(stopped)
    expect((await ended(stage, stopped, 'interrupted')).run.status).toBe('cancelled')
    await ended(stage, killed, 'error')
    await ended(stage, orphaned, 'crashed')
    writeFileSync(join(runs[3]!.folder, 'go'), '')
    const { events } = await ended(stage, adopted, 'completed')
    expect(dataOf(events, 'result')).toMatchObject([{ text: 'It went.' }])
    expect(readFileSync(join(runs[3]!.folder, 'went.txt'), 'utf8')).toBe('went\n')
  })
}
