import { idFrom, type DeviceRef, type RunId, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createCatalog } from '../../control-plane/catalog/catalog.ts'
import type { IngestCounters } from '../../control-plane/link/counters.ts'
import { Ingest } from '../../control-plane/link/ingest.ts'
import type { IngestItem } from '../../control-plane/link/ingest-item.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { EndReport, ServerMessage } from '../../shared/device/protocol.ts'
import type { Database } from '../../control-plane/db/open.ts'
import { listFrames } from '../../control-plane/resources/runs/log-store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { hasPostgres, onBoth, openPostgres, openSqlite } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace } from './seed.ts'
import { claimRun, claimRuns, offerRuns } from '../../control-plane/run/change-store.ts'
import { endRun } from '../kit/end-run.ts'
import { endReport } from '../kit/end-report.ts'
import { registerAllRunEffects } from '../../control-plane/register-run-effects.ts'
import { findAgent } from '../../control-plane/resources/agents/store.ts'

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
      await expect.poll(waits, { interval: 5 }).toBe(1)
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

const endingOf = (of: { runId: RunId; workspaceId: WorkspaceUuid; told?: Partial<EndReport>; fence?: number }) => {
  const said: string[] = []
  const { runId, workspaceId, told, fence = 1 } = of
  const item: IngestItem = {
    kind: 'ended',
    runId,
    fence,
    report: endReport(told),
    workspaceId,
    device: idFrom('dvc_a'),
    send: ({ type }) => void said.push(type),
    giveUp: () => void said.push('given up'),
  }
  return { item, said }
}

onBoth('endings that come together are written together, each as it would be by itself', async (database) => {
  registerAllRunEffects()
  const { root } = database
  const workspaceId = await seedWorkspace(root)
  const agents = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)] as const
  const device = idFrom<DeviceRef>('dvc_a')
  const begun = async (of = agents[0]) => {
    const { id: runId } = await seedRun(root, of)
    await offerRuns(root, { runIds: [runId], device, at, expiresAt: at })
    await claimRun(root, { runId, fence: 1, device, at })
    return runId
  }
  const told = { costUsd: '0.25', outputTokens: 2 }
  const [plain, costly, twice, over, offered, failed, after] = [
    await begun(),
    await begun(agents[1]),
    await begun(),
    await begun(),
    (await seedRun(root, agents[0])).id,
    await begun(),
    await begun(agents[1]),
  ]
  await offerRuns(root, { runIds: [offered], device, at, expiresAt: at })
  await endRun(root, { runId: over, fence: 1, exitReason: 'runner_lost', errorMessage: null, at })
  const endings = [
    endingOf({ runId: plain, workspaceId }),
    endingOf({ runId: costly, workspaceId, told: { usage: told, exitReason: 'error', message: 'It broke.' } }),
    endingOf({ runId: twice, workspaceId }),
    endingOf({ runId: twice, workspaceId, told: { exitReason: 'error' } }),
    endingOf({ runId: over, workspaceId }),
    endingOf({ runId: offered, workspaceId }),
    endingOf({ runId: failed, workspaceId, told: { exitReason: 'error', providerFailed: true } }),
    endingOf({ runId: after, workspaceId, told: { sessionId: 's' } }),
    endingOf({ runId: idFrom('run_0000000000000000'), workspaceId }),
  ]
  const writes: string[] = []
  root.client.on('query', ({ sql }: { sql: string }) => void (/update runs set/.test(sql) && writes.push(sql)))
  const counted: string[] = []
  const ingest = ingestOf(database, { ...uncounted, refused: (reason) => void counted.push(reason) })
  await Promise.all(endings.map(({ item }) => ingest.push(item)))
  await ingest.idle()
  expect(endings.map(({ said }) => said)).toEqual(endings.map(() => ['run.closed']))
  // Those before the one that is told again, that one whose provider failed, and what is after it.
  expect(writes).toHaveLength(3)
  expect(counted).toEqual(['run_ended', 'run_ended', 'stale_fence'])
  expect(await findRun(root, plain)).toMatchObject({ exitReason: 'completed', status: 'succeeded', version: 1 })
  expect(await findRun(root, costly)).toMatchObject({ exitReason: 'error', errorMessage: 'It broke.', usage: told })
  expect(await findRun(root, twice)).toMatchObject({ exitReason: 'completed' })
  expect(await findRun(root, over)).toMatchObject({ exitReason: 'runner_lost' })
  expect(await findRun(root, offered)).toMatchObject({ endedAt: null, leaseState: 'offered' })
  expect(await findRun(root, failed)).toMatchObject({ exitReason: 'error', providerFailed: true })
  expect(await findRun(root, after)).toMatchObject({ exitReason: 'completed', sessionId: 's' })
  const ended = await root('outbox').where({ topic: 'run.ended' }).orderBy('seq').pluck('key')
  expect(ended).toEqual([plain, costly, twice, failed, after])
  expect(await findAgent(root, agents[1].id)).toMatchObject({ spentNanoUsd: 250_000_000 })
  for (const { id } of agents) expect((await findAgent(root, id))?.lastRunAt).not.toBeNull()
})

test.skipIf(!hasPostgres())(
  'an ending whose run somebody else is ending holds up none of those that came with it',
  async () => {
    registerAllRunEffects()
    const database = await openPostgres()
    const { root } = database
    try {
      const workspaceId = await seedWorkspace(root)
      const agent = await seedAgent(root, workspaceId)
      const device = idFrom<DeviceRef>('dvc_a')
      const ids = [(await seedRun(root, agent)).id, (await seedRun(root, agent)).id] as const
      await offerRuns(root, { runIds: ids, device, at, expiresAt: at })
      for (const runId of ids) await claimRun(root, { runId, fence: 1, device, at })
      const [first, second] = ids.map((runId) => endingOf({ runId, workspaceId })) as [
        ReturnType<typeof endingOf>,
        ReturnType<typeof endingOf>,
      ]
      const waits = async () => (await root.raw('select 1 from pg_locks where not granted')).rows.length
      const pushed = await root.transaction(async (tx) => {
        await endRun(tx, { runId: ids[0], fence: 1, exitReason: 'runner_lost', errorMessage: null, at })
        const ingest = ingestOf(database)
        const stored = Promise.all([ingest.push(first.item), ingest.push(second.item)])
        await expect.poll(waits, { interval: 5 }).toBe(1)
        return { stored }
      })
      await pushed.stored
      expect([first.said, second.said]).toEqual([['run.closed'], ['run.closed']])
      expect(await findRun(root, ids[0])).toMatchObject({ exitReason: 'runner_lost' })
      expect(await findRun(root, ids[1])).toMatchObject({ exitReason: 'completed' })
    } finally {
      await database.close()
    }
  },
)

test.skipIf(!hasPostgres())('two replicas that claim and end the same runs at once do each of it once', async () => {
  registerAllRunEffects()
  const database = await openPostgres()
  const { root } = database
  try {
    const device = idFrom<DeviceRef>('dvc_a')
    const runs: { runId: RunId; workspaceId: WorkspaceUuid }[] = []
    for (const workspaceId of [await seedWorkspace(root), await seedWorkspace(root)]) {
      const agent = await seedAgent(root, workspaceId)
      for (let count = 0; count < 10; count++) runs.push({ runId: (await seedRun(root, agent)).id, workspaceId })
    }
    await offerRuns(root, { runIds: runs.map(({ runId }) => runId), device, at, expiresAt: at })
    const sent = runs.map(({ runId }) => ({ runId, fence: 1, device, at }))
    const both = await Promise.all([claimRuns(root, sent), claimRuns(root, sent.toReversed(), { areFree: true })])
    const claimed = both.flat().map(({ run }) => run.id)
    expect(claimed.toSorted()).toEqual(runs.map(({ runId }) => runId).toSorted())
    const first = runs.map(endingOf)
    const second = runs.toReversed().map((of) => endingOf({ ...of, told: { exitReason: 'error' } }))
    const replicas = [ingestOf(database), ingestOf(database)] as const
    await Promise.all([
      ...first.map(({ item }) => replicas[0].push(item)),
      ...second.map(({ item }) => replicas[1].push(item)),
    ])
    for (const { said } of [...first, ...second]) expect(said).toEqual(['run.closed'])
    const ended: string[] = await root('outbox').where({ topic: 'run.ended' }).pluck('key')
    expect(ended.toSorted()).toEqual(claimed.toSorted())
  } finally {
    await database.close()
  }
})
