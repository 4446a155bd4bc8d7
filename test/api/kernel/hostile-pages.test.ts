import { idFrom, type AgentRef, type AgentUuid, type RunId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CostlyPool } from '../../../control-plane/costly/pool.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { readingOf } from '../../../control-plane/resources/wiki/handlers/reading.ts'
import { readPage } from '../../../control-plane/resources/wiki/read-page.ts'
import { maxPageBytes } from '../../../shared/lib/wiki-limits.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { isLong } from '../../kit/forms.ts'
import { hostilePages } from '../../kit/hostile-pages.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { cpuMsOf } from '../../kit/cpu-time.ts'

// Texts of the greatest length that are made to cost as much as they can.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

/** What takes a worker half a second or more: one of them, which is published below, shows in the short form what they all do. */
const dear = [
  'brackets',
  'images in images',
  'beginnings of links',
  'beginnings of page links',
  'beginnings of citations',
  'rows of tables',
]
/** A quarter of the greatest length in the short form: what grows faster than the text shows in one that is published whole. */
const published = Object.entries(hostilePages)
  .filter(([name]) => isLong || !dear.includes(name))
  .map(([name, body]) => [name, isLong ? body : body.slice(0, maxPageBytes / 4)] as const)
const isPublishedOrRefused = /^(201|409 wiki_publish_failed)$/

const create = async (body: string, kind = 'markdown') =>
  outcomeOf(await server.call('/wiki/pages', { body: { title: server.world.uuid(), kind, body } }))

test.each(published)('%s are published or refused', async (_, body) =>
  expect(await create(body)).toMatch(isPublishedOrRefused),
)

test('the thread that serves others does little of the work', async () => {
  const body = hostilePages['beginnings of page links']!
  const reading = cpuMsOf(() => readPage({ kind: 'markdown', body }))
  let outcome = ''
  const serving = await cpuMsOf(async () => void (outcome = await create(body)))
  expect(outcome).toMatch(isPublishedOrRefused)
  // The test itself makes, sends and reads the requests on the same thread.
  expect(serving).toBeLessThan(reading / 2)
})

test('CSV of quotes alone is read once', async () => {
  expect(await create('"'.repeat(maxPageBytes), 'csv')).toBe('201')
  expect(await create('"'.repeat(maxPageBytes - 1), 'csv')).toBe('409 wiki_publish_failed')
  expect(await create('","\n'.repeat(maxPageBytes / 4), 'csv')).toBe('201')
})

test('what takes longer than its worker has is refused', async () => {
  const costly = new CostlyPool({ world: realWorld, log: silentLog, limits: { jobMs: 1 } })
  const caller = {
    kind: 'agent',
    agentRef: idFrom<AgentRef>('agt_0000000000000000'),
    agentUuid: realWorld.uuid<AgentUuid>(),
    workspaceId: realWorld.uuid<WorkspaceUuid>(),
    runId: idFrom<RunId>('run_0000000000000000'),
    fence: 1,
  } as const
  try {
    const body = hostilePages['images in images']!
    await expect(readingOf({ kind: 'markdown', body }, { caller, costly })).rejects.toMatchObject({
      code: 'wiki_publish_failed',
      message: 'The body takes too much time to be read.',
    })
  } finally {
    await costly.stop()
  }
})
