import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../shared/api/task-shapes.ts'
import type { WorkflowRun } from '../../shared/api/workflow-fields.ts'
import {
  deliver,
  githubSettings,
  mergedPayload,
  pullOf,
  repositoryOf,
  sha,
  startFakeGithub,
  type FakeGithub,
} from '../kit/fake-github.ts'
import { Hopeless, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

// The built-in programs on a real device, with an agent that does all that its prompts say and nothing else: started by hand with a
// task, by a merge, and by passed checks.

let github: FakeGithub
let system: TestSystem
beforeAll(async () => {
  github = await startFakeGithub()
  system = await TestSystem.start({ serverEnv: githubSettings(github) })
})
afterAll(async () => {
  await system.stop()
  await github.stop()
})

const harness = resolve(import.meta.dirname, '../kit/obedient-harness.mjs')
let made = 0

/** An obedient agent in a repository of its own, and a task with a pull request whose checks pass once the agent mended them. */
async function scene({ isGreen = false, isMerged = false } = {}) {
  const name = `built_in_${++made}`
  const folder = join(system.root, name)
  makeRepo(folder)
  const { publicId: deviceId } = system.device.identity
  const { shortId } = await system.api.addFolder({ displayName: name, rootPath: folder, deviceId })
  const command = [process.execPath, harness]
  const agent = await system.api.createAgent({ name, harness: 'command', defaultFolderId: shortId, command })
  const repo = `acme/${name}`
  const { id: repoId } = await system.api.insist<{ id: string }>('/repos', {
    gitRemote: `https://${github.host}/${repo}.git`,
  })
  const branch = `topic-${made}`
  const task = await system.api.insist<Task>('/tasks', {
    title: `Paint ${name}`,
    description: 'Blue.',
    repoId,
    branchName: branch,
  })
  const pull = { title: `${task.key} paint it`, branch, merged: isMerged }
  const check = () => ({
    name: 'build',
    status: 'completed',
    conclusion: isGreen || existsSync(join(folder, 'mended')) ? 'success' : 'failure',
    html_url: null,
  })
  github.answers.set(`/${repo}/pulls`, [{ number: 1 }])
  github.answers.set(`/${repo}/pulls/1`, pullOf(repo, pull))
  github.answers.set(`/${repo}/pulls/1/reviews`, [])
  github.answers.set(`/${repo}/commits/${sha('a')}/check-runs`, () => ({ check_runs: [check()] }))
  github.answers.set(`/${repo}/commits/${sha('a')}/status`, { statuses: [] })

  const send = async (event: string, payload: unknown) =>
    expect((await deliver(system.server.url, { event, payload })).body.status).toBe('accepted')
  /** GitHub tells of the checks as they are now. */
  const tell = () =>
    send('check_suite', {
      action: 'completed',
      repository: repositoryOf(repo),
      check_suite: { head_sha: sha('a'), conclusion: check().conclusion, pull_requests: [{ number: 1 }] },
    })
  const automate = (event: string, workflow: string) =>
    system.api.insist('/automations', {
      name,
      trigger: { type: 'github', event, repo },
      agentId: agent.id,
      prompt: 'Look.',
      workflow,
    })
  const byHand = async (workflow: string, input: object) =>
    (await system.api.insist<{ id: string }>('/workflows/runs', { workflow, taskId: task.key, input })).id
  const statusOfTask = async () => (await system.api.call<Task>('GET', `/tasks/${task.id}`)).status
  return {
    agent,
    task,
    tell,
    automate,
    byHand,
    statusOfTask,
    merge: () => send('pull_request', mergedPayload(repo, pull)),
  }
}

/** The run of this workflow on the task, once it is as `is` says. */
async function flow(taskId: string, is: (run: WorkflowRun) => boolean, what: string): Promise<WorkflowRun> {
  let last: WorkflowRun | undefined
  const look = async () => {
    const { data } = await system.api.call<{ data: WorkflowRun[] }>('GET', '/workflows/runs?limit=100')
    last = data.find(({ task }) => task?.id === taskId)
    if (last === undefined || is(last)) return last ?? null
    if (last.status !== 'running') throw new Hopeless(`${what}: it ended as ${last.status}: ${last.summary}`)
    return null
  }
  return waitFor(look, what, { ms: 60_000, atMostMs: 250, about: () => JSON.stringify(last, null, 1) })
}
const completed = (taskId: string) => flow(taskId, ({ status }) => status === 'completed', 'it completes')
/** It waits for checks, after so many steps. */
const waits = (taskId: string, steps: number) =>
  flow(taskId, (run) => run.parkedChecks !== null && run.steps.length === steps, `it waits after ${steps} steps`)

describe('implement_and_review', () => {
  const ends = async (taskId: string) => {
    const run = await completed(taskId)
    expect(run.summary).toMatch(/^Approved in review 2\.\n\nDid as I was told: svc task get\.\s*$/)
    expect(run.steps.map(({ label, run: of }) => [label, of?.exitReason])).toEqual(
      ['implement', 'review 1', 'fix 1', 'review 2'].map((label) => [label, 'completed']),
    )
  }

  test('by hand with a task, which stays open', async () => {
    const { task, agent, byHand, statusOfTask } = await scene()
    await byHand('implement_and_review', { implementer: agent.handle, reviewer: agent.handle })
    await ends(task.id)
    expect(await statusOfTask()).toBe('in_progress')
  })

  test('by a merge, which finished its task', async () => {
    const { task, automate, merge, statusOfTask } = await scene({ isMerged: true })
    await automate('pull_request.merged', 'implement_and_review')
    await merge()
    await ends(task.id)
    expect(await statusOfTask()).toBe('done')
  })

  test('by passed checks', async () => {
    const { task, automate, tell, statusOfTask } = await scene({ isGreen: true })
    await automate('pull_request.checks_passed', 'implement_and_review')
    await tell()
    await ends(task.id)
    expect(await statusOfTask()).toBe('in_progress')
  })
})

describe('fix_failing_checks', () => {
  test('by hand with a task, moved at once by a failed check, and by a passed one', async () => {
    const { task, agent, byHand, tell, statusOfTask } = await scene()
    await byHand('fix_failing_checks', { fixer: agent.handle })
    await waits(task.id, 0)
    await tell()
    await waits(task.id, 1)
    await tell()
    const run = await completed(task.id)
    expect(run.summary).toBe('All checks pass after 1 round of mending.')
    expect(await statusOfTask()).toBe('in_progress')
  })

  test('by a merge, which finished its task, and after which a check fails', async () => {
    const { task, automate, merge, tell, statusOfTask } = await scene({ isMerged: true })
    await automate('pull_request.merged', 'fix_failing_checks')
    await merge()
    await waits(task.id, 0)
    await tell()
    await waits(task.id, 1)
    await tell()
    expect((await completed(task.id)).summary).toBe('All checks pass after 1 round of mending.')
    expect(await statusOfTask()).toBe('done')
  })

  test('by passed checks, after which there is nothing to mend', async () => {
    const { task, automate, tell, statusOfTask } = await scene({ isGreen: true })
    await automate('pull_request.checks_passed', 'fix_failing_checks')
    await tell()
    await waits(task.id, 0)
    await tell()
    expect((await completed(task.id)).summary).toBe('All checks pass.')
    expect(await statusOfTask()).toBe('open')
  })
})

test('a workflow goes on when the pull request of its task is merged meanwhile', async () => {
  const { task, agent, merge, byHand, statusOfTask } = await scene()
  const on = `{ agent: '${agent.handle}' }`
  const program = `await agent('Begin', ${on}); await ask('Is it merged?'); await agent('Announce', ${on}); return 'announced'`
  await system.api.insist('/workflows/records', {
    source: `export const meta = { name: 'announce', title: 'Announce' }\n${program}`,
  })
  await byHand('announce', {})
  const { parkedQuestion } = await flow(task.id, (run) => run.parkedQuestion !== null, 'it asks')
  await merge()
  await waitFor(async () => ((await statusOfTask()) === 'done' ? true : null), 'the merge finishes the task')
  await system.api.insist(`/questions/${parkedQuestion!.id}/answer`, { answer: { text: 'Yes.' } })
  expect((await completed(task.id)).summary).toBe('announced')
  expect(await statusOfTask()).toBe('done')
})
