import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FileSummary } from '../../shared/api/file-fields.ts'
import type { Learning } from '../../shared/api/learning-fields.ts'
import type { WikiPage, WikiPageSummary, WikiSource } from '../../shared/api/wiki-fields.ts'
import { changeSetIsRight, checkInvariants, outputOf } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { git, printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// The main job, on a real control plane, a real device and a real repository.

let system: TestSystem
beforeAll(async () => {
  // So that a device soon notices that its server is back.
  system = await TestSystem.start({
    device: { isWalled: true },
    deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' },
  })
})
afterAll(() => system?.stop())

describe('a run', () => {
  test('from the wake to its change-set, followed while it works, with a svc of its own, which acts as its agent', async () => {
    const changes = ['write=src/made.txt:hello', 'append=README.md:more', 'remove=.gitignore']
    const asks = ['run=svc run get current', 'run=svc agent get me']
    const run = await scenario(system, { steps: ['prompt', 'cwd', ...changes, 'lines=200', ...asks] })
    const runId = await run.start('Make it so.')
    const { events: followed } = await run.api.follow(runId)
    const { run: ended, events, output } = await checkInvariants(system, run, runId, { exitReason: 'completed' })
    expect(followed).toEqual(events)
    expect(output.toString()).toContain('prompt: Make it so.\r\n')
    expect(output.toString()).toContain(`cwd: ${run.folder}\r\n`)
    expect(output.toString()).toContain(printedLines(200))
    expect(output.toString()).toContain(runId)
    expect(output.toString()).toContain(run.agentId)
    expect(output.toString().match(/run exited 0/g)).toHaveLength(2)
    expect(ended).toMatchObject({ status: 'succeeded', exitReason: 'completed', triggerSource: 'manual' })
    const { timings } = ended
    const steps = ['offered', 'wall', 'base', 'launched', 'firstOutput', 'ended', 'reported', 'stored'] as const
    const times = steps.map((step) => timings[`${step}Ms`])
    const inOrder = ['offered', 'claimed', 'launched', 'firstOutput', 'ended', 'reported'] as const
    expect([...times, timings.hostCpuMs], 'every step is told').not.toContain(null)
    const ordered = inOrder.map((step) => Number(timings[`${step}Ms`]))
    // The clocks of server and device tell whole milliseconds where they meet.
    for (const [at, ms] of ordered.slice(1).entries()) expect(ms).toBeGreaterThanOrEqual(ordered[at]! - 2)
    expect(Math.max(...times.map(Number))).toBeLessThan(
      Date.parse(ended.completedAt!) - Date.parse(ended.createdAt) + 1_000,
    )
    expect(ended.environment).toMatchObject({ type: 'device', deviceLiveness: 'connected', cwd: 'repo-root' })

    const changeSet = await run.api.changeSet(runId)
    expect(changeSet).toMatchObject({ base: { commit: run.commit, branch: 'main' }, live: false })
    expect(changeSet.files.map(({ path, status }) => [path, status])).toEqual([
      ['.gitignore', 'deleted'],
      ['README.md', 'modified'],
      ['src/made.txt', 'added'],
    ])
    const numbers = git(run.folder, 'diff', '--shortstat', run.commit, '--', 'README.md', '.gitignore')
    expect(numbers).toMatch(/1 insertion\(\+\), 1 deletion/)
    expect([changeSet.additions, changeSet.deletions]).toEqual([2, 1])
    expect(git(run.folder, 'status', '--porcelain').split('\n').length, 'the index is untouched').toBe(3)
  })

  test('is followed across a broken stream, each event once, and shows what it changed while it works, told apart from what was there before', async () => {
    const run = await scenario(system, {
      steps: [
        'write=one.txt:1',
        'rate=300',
        'lines=300',
        'touch=GATES/one',
        'await=GATES/end',
        'write=two.txt:2',
        'lines=10',
      ],
    })
    git(run.folder, 'config', 'user.name', 'Somebody')
    const runId = await run.start()
    const leave = new AbortController()
    const first = await run.api.follow(runId, {
      signal: leave.signal,
      onEvent: ({ seq }) => void (seq >= 4 && leave.abort()),
    })
    await run.reached('one')
    const live = await run.api.changeSet(runId)
    expect(live).toMatchObject({ live: true, files: [{ path: 'one.txt', status: 'added', additions: 1 }] })
    changeSetIsRight(run.folder, live)
    run.open('end')
    const rest = await run.api.follow(runId, { lastEventId: first.lastEventId ?? '' })
    const all = [...first.events, ...rest.events]
    // On several pages.
    expect(all).toEqual(await run.api.events(runId, Math.ceil(all.length / 5)))
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(310) })
    expect((await run.api.changeSet(runId)).files.map(({ path }) => path)).toEqual(['one.txt', 'two.txt'])
  })

  test('that fails is retried: a new run that names the old one', async () => {
    const run = await scenario(system, { steps: ['lines=5', 'exit=3'] })
    const runId = await run.start()
    await checkInvariants(system, run, runId, { exitReason: 'error', output: printedLines(5) })
    const retryId = await run.api.retry(runId)
    expect(retryId).not.toBe(runId)
    await checkInvariants(system, run, retryId, { exitReason: 'error', output: printedLines(5) })
    expect(await run.api.run(retryId)).toMatchObject({ parentRunId: runId })
    expect(await run.api.run(runId)).toMatchObject({ successorRunId: retryId })
  })

  test('whose program is missing ends as harness_start_failed with a sentence that helps', async () => {
    const run = await scenario(system, { steps: [] })
    await run.api.call('PUT', `/agents/${run.agentId}/config`, {
      config: { runtime: { command: ['/no/such/program'] } },
    })
    const runId = await run.start()
    const { run: ended } = await checkInvariants(system, run, runId, { exitReason: 'harness_start_failed', starts: 0 })
    expect(ended.errorMessage).toContain('/no/such/program')
  })
})

/** What one run finds out is kept by a person's word, written down by another run, and found again. */
describe('what runs find out', () => {
  const outputOfRun = async (run: Scenario, runId: string) => outputOf(await run.api.events(runId)).output.toString()
  const list = async <Row>(path: string) => (await system.api.call<{ data: Row[] }>('GET', path)).data

  /** The runs of a task, once there is one. */
  async function waitForRuns(key: string): Promise<string[]> {
    const ids = async () => (await list<{ id: string }>(`/runs?task=${key}`)).map(({ id }) => id)
    await expect.poll(async () => (await ids()).length).toBeGreaterThan(0)
    return ids()
  }

  test('a file and a learning of one run become a page that another run writes', async () => {
    const finder = await scenario(system, {
      steps: [
        'run=echo "80 is taken" > ports.txt && svc file upload ports.txt',
        'run=svc learning add --topic "Ports" --bullet "Keep 8080 for the proxy." --source https://example.com/ports --entity tool:proxy',
      ],
    })
    const task = await system.api.insist<{ id: string; key: string }>('/tasks', {
      title: 'Find out about ports',
      assignee: finder.agentId,
    })
    const [first] = await waitForRuns(task.key)
    expect((await system.api.waitForRun(first!, 'succeeded')).exitReason).toBe('completed')
    const [file] = await list<FileSummary>(`/files?entityType=task&entityId=${task.key}`)
    expect(file).toMatchObject({ name: 'ports.txt' })

    const [learning] = await list<Learning>('/learnings?status=proposed&entityName=proxy')
    expect(learning).toMatchObject({ runId: first, taskId: task.id, createdByAgentId: finder.agentId })
    await system.api.insist(`/approvals/${learning!.approvalId}/approve`, { reason: 'Well found' })
    const tasks = await list<{ title: string; key: string }>('/tasks')
    const toWrite = tasks.find(({ title }) => title === 'Add learning to wiki: Ports')
    expect(toWrite).toBeDefined()

    const old = await system.api.insist<WikiPage>('/wiki/pages', { title: 'Old ports', body: 'All of them are free.' })
    const writer = await scenario(system, {
      steps: [
        'run=printf "# Ports\\n\\nKeep 8080 for [the proxy](https://example.com/ports), not as [before](old-ports).\\n" > page.md',
        'run=svc wiki create --title "Ports" --body-file page.md > made.json && echo "made it"',
        'run=svc task transition current --status done > done.json',
      ],
    })
    await system.api.insist(`/tasks/${toWrite!.key}/assign`, { assignee: writer.agentId })
    const [second] = await waitForRuns(toWrite!.key)
    expect((await system.api.waitForRun(second!, 'succeeded')).exitReason).toBe('completed')
    const said = await outputOfRun(writer, second!)
    expect(said).toContain('made it')
    expect(await system.api.call('GET', `/tasks/${toWrite!.key}`)).toMatchObject({ status: 'done' })

    const page = await system.api.call<WikiPage>('GET', '/wiki/pages/ports')
    const [found] = await list<WikiPageSummary & { match: { text: string } }>('/wiki/pages?q=proxy%20808')
    expect(found).toMatchObject({ id: page.id, match: { text: expect.stringContaining('8080') } })
    expect(await list<WikiPageSummary>('/wiki/pages/old-ports/backlinks')).toMatchObject([{ id: page.id }])
    expect(await list<WikiSource>('/wiki/pages/ports/sources')).toMatchObject([
      { url: 'https://example.com/ports', page: null },
      { page: { id: old.id } },
    ])
    const [revision] = await list<{ runId: string; author: { id: string } }>('/wiki/pages/ports/revisions')
    expect(revision).toMatchObject({ runId: second, author: { id: writer.agentId } })

    const baseRevisionId = page.currentRevisionId
    const next = { body: `${page.body}\nAnd 8081 for tests.\n`, baseRevisionId }
    await system.api.insist('/wiki/pages/ports/revisions', next)
    await expect(system.api.insist('/wiki/pages/ports/revisions', next)).rejects.toThrow('wiki_stale_base_revision')
    await system.api.insist('/wiki/pages/ports/relations', { toPageId: 'old-ports' })
    expect(await system.api.call('GET', '/wiki/pages/old-ports')).toMatchObject({
      archivedAt: expect.any(String),
      supersededBy: [{ id: page.id }],
    })
    expect(await list<WikiPageSummary>('/wiki/pages?q=free')).toEqual([])
  })
})

describe('a control plane that is told to end', () => {
  test('sends its devices away to come again, and goes; runs do not notice', async () => {
    const run = await scenario(system, { steps: ['lines=50', 'touch=GATES/up', 'await=GATES/end', 'lines=50'] })
    const runId = await run.start()
    await run.reached('up')
    const isFollowed = Promise.withResolvers<void>()
    const followed = run.api.follow(runId, { onEvent: () => isFollowed.resolve() })
    await isFollowed.promise
    const endedAt = performance.now()
    expect(await system.server.end()).toEqual({ code: 0, signal: null })
    // Nothing is at work: the time for that, 25 s, is not waited out.
    expect(performance.now() - endedAt).toBeLessThan(20_000)
    // Its streams end; what they gave is kept.
    expect((await followed).events.length).toBeGreaterThan(0)
    await waitFor(async () => (await run.device.status()).link.state === 'connecting', 'the daemon looks for it')
    expect((await run.device.status()).link.lastError).toBeTruthy()
    expect(run.device.log).toContain('The server is restarting; connect again.')
    await system.server.start()
    await waitFor(async () => (await run.device.status()).link.state === 'connected', 'the daemon is back')
    run.open('end')
    const { events } = await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(100) })
    expect(outputOf(events).gapBytes).toBe(0)
  })
})
