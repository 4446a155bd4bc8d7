import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Run } from '../../shared/api/runs.ts'
import { hasPostgres, openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { repeats } from '../kit/forms.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { signInClaude } from '../kit/real-claude.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm, type StubStep } from '../kit/stub-llm.ts'
import { shortDurations, TestSystem, type SystemOptions } from '../kit/system.ts'
import type { TestApi } from '../kit/system-api.ts'
import { makeRepo } from '../kit/system-scenario.ts'

// A person and an agent work through tasks: the agent asks, the person answers, a tool call is approved, one task waits
// for the other, a comment stops the third. Real control planes, a real device and the real Claude Code; only its model
// is scripted, by what was said to it last.

interface Task {
  id: string
  key: string
  status: string
  conditions: { type: string; reason?: string }[]
}
interface Entry {
  kind: string
  source: string
  data: Record<string, unknown>
}

/** `svc` may find no server for a while; it is called again until it found one. */
const insisting = (command: string) => `until ${command}; do sleep 0.3; done`

const model: readonly (StubStep & { when: string })[] = [
  // Its run is being ended: nothing more is said.
  { when: 'tool_result.*qst_', hang: true },
  { when: 'tool_result.*svc-done', text: 'That is finished.' },
  {
    when: 'blue, please',
    tool: {
      kind: 'shell',
      command: `echo blue > door.txt && ${insisting('svc task transition current --status done')} && echo svc-done`,
    },
  },
  { when: 'Owner approved', tool: { kind: 'shell', command: 'touch deployed.txt && echo deployed-it' } },
  { when: 'tool_result.*deployed-it', tool: { kind: 'shell', command: closing() } },
  { when: 'Please stop', text: 'I stopped.' },
  {
    when: 'Task MAI-1: Paint the door',
    tool: { kind: 'shell', command: insisting('svc question ask "Which colour?"') },
  },
  { when: 'Task MAI-2: Deploy the door', tool: { kind: 'shell', command: 'touch deployed.txt && echo deployed-it' } },
  { when: 'Task MAI-3: Watch the door', hang: true },
]
function closing(): string {
  return `${insisting('svc task transition current --status done')} && echo svc-done`
}

let found: ReturnType<typeof fetchHarness>
let stub: StubLlm
beforeAll(async () => {
  found = fetchHarness('claude')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
})
beforeEach((context) => {
  if ('missing' in found) context.skip(found.missing)
})
afterAll(() => stub?.stop())

/** A system with one device on which claude is installed and signed in, and an agent in a repository there. */
async function begin(options: SystemOptions) {
  if ('missing' in found) throw new Error(found.missing)
  await stub.script({ run: { steps: [], rules: model } })
  const system = await TestSystem.start({ ...options, devices: 0 })
  const device = system.makeDevice()
  signInClaude(device.homeDir, { binDir: found.binDir, modelUrl: `${stub.url}/s/run` })
  await device.enrol(system.api, options.withProxy === true ? system.proxy.url : system.server.url)
  await device.start()
  const folder = join(system.root, 'repo')
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await system.api.addFolder({ displayName: 'repo', rootPath: folder, deviceId: publicId })
  const agent = await system.api.createAgent({ name: 'Claude', harness: 'claude', defaultFolderId: shortId })
  await system.api.call('PUT', `/agents/${agent.id}/config`, {
    config: { permissions: { tools: { ask: ['Bash(touch deployed.txt*)'] } } },
  })
  return { system, folder, agentId: agent.id }
}

/** Asks for tasks, again and again, while servers come and go. */
function tasksOf(api: TestApi) {
  const asking = { ms: 90_000, everyMs: 100 }
  const get = (id: string) => api.call<Task>('GET', `/tasks/${id}`)
  const runsOf = async (key: string) => (await api.call<{ data: Run[] }>('GET', `/runs?task=${key}&limit=50`)).data
  const has = (task: Task, type: string, reason?: string) =>
    task.conditions.some((each) => each.type === type && (reason === undefined || each.reason === reason))
  return {
    get,
    runsOf,
    has,
    create: (body: Record<string, unknown>) => api.insist<Task>('/tasks', body),
    until: (id: string, is: (task: Task) => boolean, what: string) =>
      waitFor(async () => (is(await get(id)) ? get(id) : null), what, asking),
    first: <Row>(path: string, what: string) =>
      waitFor(async () => (await api.call<{ data: Row[] }>('GET', path)).data[0] ?? null, what, asking),
    ended: (key: string, status: Run['status']) =>
      waitFor(
        async () => (await runsOf(key)).find((run) => run.status === status) ?? null,
        `a run of ${key} is ${status}`,
        asking,
      ),
  }
}

async function story(api: TestApi, { agentId, folder }: { agentId: string; folder: string }): Promise<void> {
  const tasks = tasksOf(api)
  const assignee = { type: 'agent', id: agentId }
  const paint = await tasks.create({ title: 'Paint the door', assignee })
  const deploy = await tasks.create({ title: 'Deploy the door', assignee, dependsOn: [paint.key] })
  expect(tasks.has(deploy, 'blocked', 'dependency')).toBe(true)

  // The first run asks and stops; the task waits for a person.
  const question = await tasks.first<{ id: string; prompt: string }>(
    `/questions?status=open&taskId=${paint.id}`,
    'the agent asks',
  )
  expect(question.prompt).toBe('Which colour?')
  await tasks.until(
    paint.id,
    (task) => tasks.has(task, 'blocked', 'question') && !tasks.has(task, 'active_run'),
    'waits',
  )
  await api.insist(`/questions/${question.id}/answer`, { answer: { text: 'blue, please', selected: null } })

  // The answer wakes it, it finishes; what the task blocked begins by itself, and stops at a call that must be asked.
  await tasks.until(paint.id, (task) => task.status === 'done', 'the door is painted')
  expect(existsSync(join(folder, 'door.txt'))).toBe(true)
  const approval = await tasks.first<{ id: string; trigger: string; gatedThing: { name: string } }>(
    `/approvals?status=open&taskId=${deploy.id}`,
    'an approval is asked for',
  )
  expect(approval).toMatchObject({ trigger: 'tool_permission', gatedThing: { kind: 'tool_call', name: 'Bash' } })
  expect(existsSync(join(folder, 'deployed.txt'))).toBe(false)
  await tasks.until(
    deploy.id,
    (task) => tasks.has(task, 'blocked', 'approval') && !tasks.has(task, 'active_run'),
    'waits',
  )
  await api.insist(`/approvals/${approval.id}/approve`, { appliedScope: 'always', reason: 'You may deploy.' })
  await tasks.until(deploy.id, (task) => task.status === 'done', 'the door is deployed')
  expect(existsSync(join(folder, 'deployed.txt'))).toBe(true)
  const { config } = await api.call<{ config: unknown }>('GET', `/agents/${agentId}/config`)
  expect(JSON.stringify(config)).toContain('touch deployed.txt')

  // A comment stops what goes on for ever.
  const watch = await tasks.create({ title: 'Watch the door', assignee })
  await tasks.until(watch.id, (task) => tasks.has(task, 'active_run') && task.status === 'in_progress', 'it is watched')
  await api.insist(`/tasks/${watch.id}/comments`, { content: 'Please stop.', interrupt: true })
  await tasks.ended(watch.key, 'cancelled')
  await tasks.ended(watch.key, 'succeeded')

  await isTold(api, { paint, deploy, watch })
}

/** All of it can be read in the history of the tasks. */
async function isTold(
  api: TestApi,
  { paint, deploy, watch }: Record<'paint' | 'deploy' | 'watch', Task>,
): Promise<void> {
  const history = async (task: Task) =>
    (await api.call<{ data: Entry[] }>('GET', `/tasks/${task.id}/history?limit=500`)).data
  const runsIn = (entries: Entry[]) =>
    entries.filter(({ source }) => source === 'run').map(({ data }) => data['exitReason'])
  const kindsOf = (entries: Entry[]) => entries.map(({ kind }) => kind)
  const painted = await history(paint)
  expect(runsIn(painted)).toEqual(['question_asked', 'completed'])
  expect(JSON.stringify(painted)).toContain('Which colour?')
  expect(JSON.stringify(painted)).toContain('blue, please')
  expect(kindsOf(painted)).toEqual(expect.arrayContaining(['question.asked', 'question.answered']))
  const statuses = painted.filter(({ kind }) => kind === 'task.status_changed').map(({ data }) => data['to'])
  expect(statuses).toEqual(['in_progress', 'done'])
  const deployed = await history(deploy)
  expect(runsIn(deployed)).toEqual(['approval_requested', 'completed'])
  expect(kindsOf(deployed)).toEqual(expect.arrayContaining(['approval.requested', 'approval.approved']))
  const watched = await history(watch)
  expect(runsIn(watched)).toEqual(['interrupted', 'completed'])
  expect(JSON.stringify(watched)).toContain('Please stop.')
}

describe('people and agents', () => {
  test('from two tasks to the last comment, on SQLite', async () => {
    const { system, ...scene } = await begin({})
    try {
      await story(system.api, scene)
    } finally {
      await system.stop()
    }
  })

  // What a kill of the daemon or of a server does to a run, the tests of faults show one by one.
  const underFaults = 'the same with two replicas, while the daemon and a replica are killed again and again'
  test.skipIf(!hasPostgres())(underFaults, { timeout: 300_000 }, async () => {
    const random = seededRandom('people')
    const database: PostgresDatabase = await openPostgres()
    try {
      const options = { ...shortDurations(10), replicas: 2, databaseUrl: database.url, withProxy: true }
      const { system, ...scene } = await begin(options)
      const over = new AbortController()
      // Each program that was killed costs a start.
      const pauseMs = repeats('PEOPLE_PAUSE_MS', { short: 2_500, long: 2_500 })
      const faults = async () => {
        const [first, second] = system.servers
        while (!over.signal.aborted) {
          await delay(500 + random() * pauseMs)
          if (random() < 0.5) {
            await system.device.kill9()
            await delay(random() * 500)
            system.device.launch()
          } else {
            // The one that the device is linked to; the people's stays.
            system.routeTo(second!)
            await first!.kill9()
            await delay(random() * 500)
            await first!.start()
            system.routeTo(first!)
          }
        }
      }
      const trouble = faults()
      // Heard of where it is awaited.
      trouble.catch(() => undefined)
      try {
        await story(system.servers[1]!.api, scene)
      } finally {
        over.abort()
        await trouble
        await system.stop()
      }
    } finally {
      await database.close()
    }
  })
})
