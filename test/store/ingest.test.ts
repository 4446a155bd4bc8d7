import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createCatalog } from '../../control-plane/catalog/catalog.ts'
import type { IngestCounters } from '../../control-plane/link/counters.ts'
import { Ingest } from '../../control-plane/link/ingest.ts'
import type { IngestItem } from '../../control-plane/link/ingest-item.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { ServerMessage } from '../../shared/device/protocol.ts'
import type { Database } from '../../control-plane/db/open.ts'
import { listFrames } from '../../control-plane/resources/runs/log-store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { hasPostgres, onBoth, openPostgres, openSqlite } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace } from './seed.ts'
import { claimRun, offerRuns } from '../../control-plane/run/change-store.ts'
import { endRun } from '../kit/end-run.ts'

// When what was pushed is stored and answered, whatever the moment at which it comes.

const body = Buffer.from('{"seq":1,"at":1,"kind":"text","data":{"text":"x"}}\n')
/** Of a run that nobody knows, which is refused: an answer like any other. */
const frame = (answered: () => void): IngestItem => ({
  kind: 'events',
  header: {
    type: 'run.events',
    runId: idFrom('run_0000000000000000'),
    fence: 1,
    firstSeq: 1,
    lastSeq: 1,
    kinds: { text: 1 },
    sha256: createHash('sha256').update(body).digest('hex'),
  },
  body,
  device: idFrom('dvc_a'),
  workspaceId: idFrom('w'),
  send: () => answered(),
  giveUp: () => undefined,
})

const uncounted: IngestCounters = { refused: () => undefined, integrity: () => undefined, stored: () => undefined }

const ingestOf = ({ root }: Database, counters = uncounted) =>
  new Ingest({
    root,
    world: realWorld,
    log: silentLog,
    bus: { signal: () => undefined },
    counters,
    catalog: createCatalog([]),
    onEnded: () => undefined,
  })

test('what comes while the work before it is just done is not left lying', async () => {
  const database = openSqlite()
  const ingest = ingestOf(database)
  let answers = 0
  const pushed = () =>
    new Promise<void>((resolve) => {
      const answered = () => {
        answers++
        resolve()
      }
      void ingest.push(frame(answered))
    })
  const moments = 40
  for (let turns = 0; turns < moments; turns++) {
    await pushed()
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    await pushed()
    await pushed()
  }
  expect(answers).toBe(3 * moments)
  await database.close()
})

onBoth('events that are sent again are compared, and what is refused is counted', async (database) => {
  const { root } = database
  const workspaceId = await seedWorkspace(root)
  const { id: runId } = await seedRun(root, await seedAgent(root, workspaceId))
  await offerRuns(root, { runIds: [runId], device: idFrom('dvc_a'), at, expiresAt: at })
  await claimRun(root, { runId, fence: 1, device: idFrom('dvc_a'), at })
  const counted: string[] = []
  const ingest = ingestOf(database, {
    ...uncounted,
    refused: (reason) => void counted.push(`refused: ${reason}`),
    integrity: (_, message) => void counted.push(message),
  })
  const push = async (text: string, of: RunId) => {
    const bytes = Buffer.from(`{"seq":1,"at":1,"kind":"text","data":{"text":"${text}"}}\n`)
    const sent: ServerMessage[] = []
    const given = frame(() => undefined)
    if (given.kind !== 'events') throw new Error('no events')
    const header = { ...given.header, runId: of, sha256: createHash('sha256').update(bytes).digest('hex') }
    await ingest.push({ ...given, workspaceId, header, body: bytes, send: (message) => void sent.push(message) })
    return sent.map(({ type }) => type)
  }
  expect(await push('x', runId)).toEqual(['ack'])
  expect(await push('x', runId)).toEqual(['ack'])
  expect(counted).toEqual([])
  expect(await push('y', runId)).toEqual(['ack'])
  expect(counted).toEqual(['events from 1 were sent again with other content'])
  expect(await push('x', idFrom('run_0000000000000000'))).toEqual(['run.refused'])
  expect(counted.slice(1)).toEqual(['refused: run_unknown'])
})

test.skipIf(!hasPostgres())('events of a run that ends while they are stored are refused', async () => {
  const database = await openPostgres()
  const { root } = database
  try {
    const workspaceId = await seedWorkspace(root)
    const { id: runId } = await seedRun(root, await seedAgent(root, workspaceId))
    await offerRuns(root, { runIds: [runId], device: idFrom('dvc_a'), at, expiresAt: at })
    await claimRun(root, { runId, fence: 1, device: idFrom('dvc_a'), at })
    const sent: ServerMessage[] = []
    const given = frame(() => undefined)
    const events = given.kind === 'events' && { ...given, workspaceId, header: { ...given.header, runId } }
    if (events === false) throw new Error('no events')
    const waits = async () => (await root.raw('select 1 from pg_locks where not granted')).rows.length
    // The end is written and not yet committed when the events arrive: they read a live run, and wait to store what they have.
    const stored = await root.transaction(async (tx) => {
      await endRun(tx, { runId, fence: 1, exitReason: 'runner_lost', errorMessage: null, at })
      const pushed = ingestOf(database).push({ ...events, send: (message) => void sent.push(message) })
      await expect.poll(waits, { timeout: 10_000, interval: 5 }).toBe(1)
      return { pushed }
    })
    await stored.pushed
    expect(sent).toEqual([{ type: 'run.refused', runId, fence: 1, reason: 'run_ended' }])
    expect(await listFrames(root, { runId, afterSeq: 0, limit: 10 })).toEqual([])
    expect(await findRun(root, runId)).toMatchObject({ eventSeq: 0, exitReason: 'runner_lost' })
  } finally {
    await database.close()
  }
})
