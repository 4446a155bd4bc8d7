import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import { asked, dataOf, ended, newAgent, plays, says, type Stage } from './stage.ts'

/** Folders of skills that an agent names, for a harness that takes some. */
export function skillCases(stageOf: () => Stage): void {
  test('folders of skills: they are offered, told and in the manifest; a changed one begins a new session', async () => {
    const stage = stageOf()
    const folder = join(stage.device.homeDir, 'team', 'tides')
    mkdirSync(folder, { recursive: true })
    const write = (body: string) =>
      writeFileSync(
        join(folder, 'SKILL.md'),
        `---\nname: tides\ndescription: Reads the tide table of the harbour.\n---\n${body}\n`,
      )
    write('Look at the moon.')
    const skillFolders = ['~/team', 'none']
    const tools = { deny: ['Bash(rm:*)'] }
    const config = { runtime: { skillFolders }, permissions: { tools } }
    const agent = await newAgent(stage, 'Sailor', { config })
    await says(stage, [{ text: 'At noon.' }])
    const assignee = { type: 'agent', id: agent.id }
    const { id: taskId } = await stage.api.insist<{ id: string }>('/tasks', { title: 'Sail', assignee })
    const runsOf = async () => (await stage.api.call<{ data: { id: string }[] }>('GET', `/runs?task=${taskId}`)).data
    const runId = await waitFor(async () => (await runsOf())[0]?.id, 'the assignment wakes a run')
    const first = await ended(stage, runId, 'completed')
    expect((await asked(stage)).join('').includes('Reads the tide table of the harbour.')).toBe(true)
    expect(dataOf(first.events, 'error').filter(({ class: kind }) => kind === 'skill_left_out')).toMatchObject([
      { message: expect.stringContaining('none: there is no such folder on this device') },
    ])
    const manifest = await stage.api.call('GET', `/runs/${runId}/manifest`)
    const version = expect.stringMatching(/^[0-9a-f]{12}$/)
    const svc = { id: 'workspace/svc', name: 'svc', version }
    expect(manifest).toMatchObject({ ignored: [], skills: [{ id: '~/team/tides', name: 'tides', version }, svc] })

    await says(stage, [{ text: 'As I said.' }])
    const second = await plays(stage, agent, { taskId, prompt: 'When was it?' })
    expect(dataOf(second.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
    write('Look at the table.')
    await says(stage, [{ text: 'I look again.' }])
    const third = await plays(stage, agent, { taskId, prompt: 'And now?' })
    expect(third.sessionId).not.toBe(first.sessionId)
    const request = (await asked(stage)).join('')
    expect([request.includes('And now?'), request.includes('As I said.')]).toEqual([true, false])
  })

  test('skills of the workspace: a session that is gone on with reads them where they are now', async () => {
    const stage = stageOf()
    const files = [
      { path: 'SKILL.md', content: 'Read the chart.' },
      { path: 'chart.md', content: 'Rocks ahead.' },
    ]
    const body = { slug: 'chart', name: 'Chart', description: 'Knows the rocks.', bundle: { files } }
    await stage.api.call('POST', '/skills', body)
    const agent = await newAgent(stage, 'Pilot', { config: { permissions: { tools: { deny: ['Bash(rm:*)'] } } } })
    await says(stage, [{ text: 'I see.' }])
    const assignee = { type: 'agent', id: agent.id }
    const { id: taskId } = await stage.api.insist<{ id: string }>('/tasks', { title: 'Steer', assignee })
    const runsOf = async () => (await stage.api.call<{ data: { id: string }[] }>('GET', `/runs?task=${taskId}`)).data
    const runId = await waitFor(async () => (await runsOf())[0]?.id, 'the assignment wakes a run')
    await ended(stage, runId, 'completed')
    const placesIn = (text: string) =>
      new Set([...text.matchAll(/own\/h[^/"\\]*\/skills\/chart/g)].map(([place]) => place))
    const before = placesIn((await asked(stage)).join(''))
    await says(stage, [{ text: 'As I said.' }])
    const second = await plays(stage, agent, { taskId, prompt: 'And now?' })
    expect(dataOf(second.events, 'session')).toMatchObject([{ resumed: true }])
    const now = placesIn((await asked(stage)).at(-1)!)
    // claude is told where they are when it reads the skill.
    const isTold = [...now].some((place) => !before.has(place)) || stage.driver.program === 'claude'
    expect([isTold, stage.driver.program]).toEqual([true, stage.driver.program])
    await stage.api.call('DELETE', '/skills/chart')
  })
}
