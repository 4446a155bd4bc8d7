import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Learning } from '../../shared/api/learning-fields.ts'
import type { FileSummary } from '../../shared/api/file-fields.ts'
import type { WikiPage, WikiPageSummary, WikiSource } from '../../shared/api/wiki-fields.ts'
import { outputOf } from '../kit/invariants.ts'
import { TestSystem } from '../kit/system.ts'
import { scenario, type Scenario } from '../kit/system-scenario.ts'

/** What one run finds out is kept by a person's word, written down by another run, and found again; with real programs. */

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start()
})
afterAll(() => system?.stop())

const outputOfRun = async (run: Scenario, runId: string) => outputOf(await run.api.events(runId)).output.toString()
const list = async <Row>(path: string) => (await system.api.call<{ data: Row[] }>('GET', path)).data

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

/** The runs of a task, once there is one. */
async function waitForRuns(key: string): Promise<string[]> {
  const ids = async () => (await list<{ id: string }>(`/runs?task=${key}`)).map(({ id }) => id)
  await expect.poll(async () => (await ids()).length, { timeout: 20_000 }).toBeGreaterThan(0)
  return ids()
}
