import {
  idFrom,
  type AgentRef,
  type ApprovalId,
  type DeviceRef,
  type RunId,
  type WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import { tried } from '../../shared/runs/wall-acts.ts'
import { lineWithinBound } from '../../shared/device/event-line.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import { expect } from 'vitest'
import type { Db } from '../../control-plane/db/open.ts'
import { findPlatformChange, insertPlatformChange } from '../../control-plane/resources/platform-changes/store.ts'
import type { NewDetails } from '../../control-plane/resources/runs/details-table.ts'
import {
  findDetails,
  replaceOutput,
  recordWall,
  replaceOutputSchemas,
  replaceSpec,
} from '../../control-plane/resources/runs/details-store.ts'
import {
  findChangeSet,
  findFrame,
  insertEvidence,
  hasOverlong,
  measureChangeSet,
  measureEvidence,
  insertFrames,
  listFrames,
  listFramesBackward,
  mayBeMore,
  replaceChangeSet,
  type Frame,
} from '../../control-plane/resources/runs/log-store.ts'
import {
  findEvent,
  findFinalAnswer,
  listEvents,
  listEventsBackward,
  resultIn,
} from '../../control-plane/resources/runs/event-log.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { claimWakeKey, findWakeAnswer, replaceWakeAnswer } from '../../control-plane/run/wakes/key-store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace } from './seed.ts'
import { changeRun, claimRun, offerRuns } from '../../control-plane/run/change-store.ts'

async function seedRunning(db: Db, details: Partial<NewDetails> = {}): Promise<string> {
  const { id } = await seedRun(db, await seedAgent(db, await seedWorkspace(db)), {}, details)
  await offerRuns(db, { runIds: [id], device: idFrom('dvc_a'), at, expiresAt: at })
  await claimRun(db, { runId: id, fence: 1, device: idFrom('dvc_a'), at })
  return id
}

const frame = (runId: string, firstSeq: number, lastSeq: number): Frame => ({
  runId: idFrom(runId),
  fence: 1,
  firstSeq,
  lastSeq,
  sha256: 'x',
  body: Buffer.from([0, 255, firstSeq]),
  receivedAt: at,
})

onBoth('large frames are read one at a time', async ({ root }) => {
  const runId = await seedRunning(root)
  const [a, b, c, d] = [frame(runId, 1, 3), frame(runId, 4, 4), frame(runId, 5, 9), frame(runId, 10, 10)]
  for (const each of [b, c]) each.body = Buffer.alloc(5 * 1024 * 1024, 10)
  await insertFrames(root, [a, b, c, d])
  const numbers = async (afterSeq: number, limit: number) => {
    const read = await listFrames(root, { runId: idFrom(runId), afterSeq, limit })
    return [...read.map(({ firstSeq }) => firstSeq), mayBeMore(read, limit) ? 'more' : 'all']
  }
  expect(await numbers(0, 8)).toEqual([1, 4, 'more'])
  expect(await numbers(4, 8)).toEqual([5, 'more'])
  expect(await numbers(9, 8)).toEqual([10, 'all'])
  expect(await numbers(9, 1)).toEqual([10, 'more'])
  const back = await listFramesBackward(root, { runId: idFrom(runId), beforeSeq: 99, limit: 8 })
  expect(back.map(({ firstSeq }) => firstSeq)).toEqual([10, 5])
  // Of lines, of which the first frame has one.
  const page = await listEvents(root, { runId: idFrom(runId), afterSeq: 0, limit: 100 })
  expect(page.events.map(({ seq }) => seq)).toEqual([1, 4, 5, 6, 7, 8, 9, 10])
})

onBoth('frames keep their bytes and are read forwards, backwards and by event', async ({ root }) => {
  const runId = await seedRunning(root)
  const [a, b, c] = [frame(runId, 1, 3), frame(runId, 4, 4), frame(runId, 5, 9)]
  await insertFrames(root, [a, b])
  await insertFrames(root, [c])
  await insertFrames(root, [frame(await seedRunning(root), 1, 1)])
  expect(await listFrames(root, { runId: idFrom(runId), afterSeq: 0, limit: 10 })).toEqual([a, b, c])
  expect(await listFrames(root, { runId: idFrom(runId), afterSeq: 3, limit: 1 })).toEqual([b])
  expect(await listFrames(root, { runId: idFrom(runId), afterSeq: 2, limit: 2 })).toEqual([a, b])
  expect(await listFrames(root, { runId: idFrom(runId), afterSeq: 6, limit: 10 })).toEqual([c])
  expect(await listFrames(root, { runId: idFrom(runId), afterSeq: 9, limit: 10 })).toEqual([])
  expect(await listFramesBackward(root, { runId: idFrom(runId), beforeSeq: 99, limit: 2 })).toEqual([c, b])
  expect(await listFramesBackward(root, { runId: idFrom(runId), beforeSeq: 5, limit: 10 })).toEqual([b, a])
  expect(await findFrame(root, idFrom(runId), 6)).toEqual(c)
  expect(await findFrame(root, idFrom(runId), 3)).toEqual(a)
  expect(await findFrame(root, idFrom(runId), 10)).toBeNull()
  expect(await findFrame(root, idFrom(runId), 0)).toBeNull()
})

onBoth('a frame holds as many events as its numbers say, whatever lies in its body', async ({ root }) => {
  const runId = idFrom<RunId>(await seedRunning(root))
  const lines = { ...frame(runId, 1, 2), body: Buffer.alloc(200_000, '\n') }
  await insertFrames(root, [lines, { ...frame(runId, 3, 3), body: Buffer.from('last\n') }])
  const page = { runId, limit: 500 }
  const forward = await listEvents(root, { ...page, afterSeq: 0 })
  expect(forward.events.map(({ seq, data }) => [seq, data['text']])).toEqual([
    [1, ''],
    [2, ''],
    [3, 'last'],
  ])
  expect((await listEvents(root, { ...page, afterSeq: 2 })).events).toEqual(forward.events.slice(2))
  const backward = await listEventsBackward(root, { ...page, beforeSeq: 9 })
  expect(backward.events).toEqual(forward.events.toReversed())
  expect(await findEvent(root, { runId, fence: 1, seq: 4 })).toBeNull()
})

onBoth('a log is known by the gap that stands in the place of an event that was too long', async ({ root }) => {
  const runId = await seedRunning(root)
  const long = Buffer.alloc(linkLimits.lineBytes + 1, 'x')
  const body = Buffer.from(`${Buffer.from(lineWithinBound(long, 20)).toString()}\n`)
  await insertFrames(
    root,
    Array.from({ length: 19 }, (_, at) => frame(runId, at + 1, at + 1)),
  )
  expect(await hasOverlong(root, { runId: idFrom(runId), seq: 19 })).toBe(false)
  await insertFrames(root, [{ ...frame(runId, 20, 20), body }])
  expect(await hasOverlong(root, { runId: idFrom(runId), seq: 20 })).toBe(true)
})

onBoth('the log moves forward from where it is, for the lease that holds the run', async ({ root }) => {
  const runId = idFrom<RunId>(await seedRunning(root))
  const step = { type: 'events_stored', fence: 1, fromSeq: 0, toSeq: 3, bytes: 10 } as const
  expect(await changeRun(root, runId, { ...step, fence: 2 })).toBe(false)
  expect(await changeRun(root, runId, step)).toBe(true)
  expect(await changeRun(root, runId, step)).toBe(false)
  expect(await changeRun(root, runId, { ...step, fromSeq: 3, toSeq: 5, bytes: 5 })).toBe(true)
  await changeRun(root, runId, { type: 'progress_told', usage: { costUsd: '0.5', outputTokens: 2 }, sessionId: 's' })
  await changeRun(root, runId, { type: 'progress_told', usage: undefined, sessionId: undefined })
  expect(await findRun(root, runId)).toMatchObject({
    eventSeq: 5,
    eventBytes: 15,
    usage: { costUsd: '0.5', outputTokens: 2 },
    costUsd: '0.5',
    sessionId: 's',
  })
})

onBoth('evidence is counted; the last change-set replaces the one before', async ({ root }) => {
  const runId = idFrom<RunId>(await seedRunning(root))
  const evidence = {
    runId,
    fence: 1,
    firstSeq: null,
    lastSeq: null,
    device: idFrom<DeviceRef>('dvc_a'),
    reason: 'late',
    receivedAt: at,
  }
  expect(await measureEvidence(root, { runId })).toEqual({ count: 0, bytes: 0 })
  await insertEvidence(root, { id: 'e1', ...evidence, body: Buffer.from('x') })
  await insertEvidence(root, { id: 'e2', ...evidence, firstSeq: 1, lastSeq: 2, body: Buffer.alloc(0) })
  expect(await measureEvidence(root, { runId })).toEqual({ count: 2, bytes: 1 })
  const other = { ...evidence, runId: idFrom<RunId>(await seedRunning(root)), device: idFrom<DeviceRef>('dvc_a') }
  await insertEvidence(root, { id: 'e3', ...other, body: Buffer.from('xy') })
  expect(await measureEvidence(root, { device: idFrom('dvc_a') })).toEqual({ count: 3, bytes: 3 })
  expect(await measureEvidence(root, { device: idFrom('dvc_b') })).toEqual({ count: 0, bytes: 0 })
  expect(await findChangeSet(root, runId)).toBeNull()
  expect(await measureChangeSet(root, runId)).toBe(0)
  const failed = { ok: false, code: 'too_large', message: 'x' } as const
  await replaceChangeSet(root, { runId, fence: 1, result: failed, at })
  const gone = { ...failed, code: 'repo_unavailable' } as const
  await replaceChangeSet(root, { runId, fence: 2, result: gone, at: at + 1 })
  expect(await findChangeSet(root, runId)).toEqual({ runId, fence: 2, result: gone, receivedAt: at + 1 })
  expect(await measureChangeSet(root, runId)).toBe(JSON.stringify(gone).length)
})

const spec = {
  runId: idFrom<RunId>('run_0000000000000000'),
  workspaceId: idFrom<WorkspaceUuid>('w'),
  agent: { id: idFrom<AgentRef>('a'), handle: '@a', name: 'A' },
  harness: 'claude',
  folder: null,
  prompt: 'p',
  agentMd: '',
  model: null,
  backupModel: null,
  reasoningEffort: null,
  maxTurns: null,
  command: null,
  permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' },
  resumeSessionId: null,
  limits: { runMs: 1, noProgressMs: 1, firstEventMs: 1, toolCalls: 1, silentMs: 1 },
} as const

onBoth('details hold the prompt, the spec, and the last output, whatever JSON it is', async ({ root }) => {
  expect(await findDetails(root, idFrom('run_0000000000000000'))).toBeNull()
  const stored = {
    ...spec,
    allowCalls: [],
    mcpServers: {},
    permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' as const },
  }
  const runId = await seedRunning(root, { prompt: 'Größe 🙂', spec: stored })
  expect(await findDetails(root, idFrom(runId))).toMatchObject({
    prompt: 'Größe 🙂',
    spec,
    manifest: null,
    output: null,
  })
  await replaceSpec(root, idFrom(runId), { ...stored, resumeSessionId: 'other' })
  expect((await findDetails(root, idFrom(runId)))?.spec).toEqual({ ...stored, resumeSessionId: 'other' })
  for (const value of [{ a: [1] }, null, 'text', false])
    await replaceOutput(root, { runId: idFrom(runId), schema: 's', value, at: at + 1 })
  expect(await findDetails(root, idFrom(runId))).toMatchObject({ output: false, outputSchema: 's', outputAt: at + 1 })
  expect((await findDetails(root, idFrom(runId)))?.outputSchemas).toBeNull()
  const schemas = { Note: { type: 'string' } }
  await replaceOutputSchemas(root, idFrom(runId), schemas)
  expect((await findDetails(root, idFrom(runId)))?.outputSchemas).toEqual(schemas)
  expect((await findDetails(root, idFrom(runId)))?.wall).toBeNull()
  const seen = [tried('mount', 'refused', 'EPERM')]
  await recordWall(root, idFrom(runId), seen)
  await recordWall(root, idFrom(runId), [tried('mount', 'not_refused', 'told later')])
  expect((await findDetails(root, idFrom(runId)))?.wall).toEqual(seen)
})

onBoth('a wake key is taken once until it expires', async ({ root }) => {
  const wake = { agentRef: idFrom<AgentRef>('agt_a'), key: 'k', now: at, expiresAt: at + 10 }
  expect(await claimWakeKey(root, wake)).toBe(true)
  expect(await claimWakeKey(root, wake)).toBe(false)
  expect(await claimWakeKey(root, { ...wake, agentRef: idFrom('agt_b') })).toBe(true)
  await replaceWakeAnswer(root, { agentRef: idFrom('agt_a'), key: 'k', answer: '{"kind":"queued"}' })
  expect(await findWakeAnswer(root, idFrom('agt_a'), 'k')).toBe('{"kind":"queued"}')
  expect(await findWakeAnswer(root, idFrom('agt_a'), 'other')).toBeNull()
  expect(await claimWakeKey(root, { ...wake, now: at + 9 })).toBe(false)
  expect(await claimWakeKey(root, { ...wake, now: at + 10, expiresAt: at + 20 })).toBe(true)
  expect(await findWakeAnswer(root, idFrom('agt_a'), 'k')).toBe('')
})

onBoth('a platform change is found in its workspace', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const change = {
    id: idFrom<ApprovalId>('apr_0000000000000000'),
    workspaceId,
    agentRef: idFrom<AgentRef>('agt_a'),
    runId: idFrom<RunId>('run_a'),
    routeId: 'agents.update',
    params: { agentId: 'agt_b' },
    body: { name: 'x', nested: [null] },
    source: 'api' as const,
    createdAt: at,
  }
  await insertPlatformChange(root, change)
  expect(await findPlatformChange(root, workspaceId, change.id)).toEqual({
    ...change,
    status: 'pending',
    result: null,
    toldRunId: null,
  })
  expect(await findPlatformChange(root, await seedWorkspace(root), change.id)).toBeNull()
})

onBoth('the result of a run is found in its last frame as it is in all of them', async ({ root }) => {
  const said = (text: string) => ({ seq: 1, kind: 'text', at, data: { text } })
  const result = (text: unknown, more = {}) => ({ seq: 1, kind: 'result', at, data: { text, isError: false, ...more } })
  const gate = { ranArgv: ['ls'], exitCode: 2, cwd: '/a' }
  const logs: { events: unknown[]; inLast: string | null }[] = [
    { events: [said('a'), result('b'), said('c')], inLast: 'b' },
    { events: [result('a'), result('b', { isError: true, gate }), 'no event'], inLast: 'b' },
    { events: [said('a'), result(5), { kind: 'result' }], inLast: null },
    { events: [result('too far'), ...Array.from({ length: 500 }, () => said('later'))], inLast: null },
  ]
  for (const { events, inLast } of logs) {
    const runId = await seedRunning(root)
    const body = Buffer.from(events.map((event) => JSON.stringify(event)).join('\n') + '\n')
    const last = { ...frame(runId, 1, events.length), body }
    await insertFrames(root, [last])
    const found = resultIn(last)
    expect(found?.text ?? null).toBe(inLast)
    if (found !== null) expect(found).toEqual(await findFinalAnswer(root, { id: idFrom(runId), harness: 'claude' }))
  }
})

onBoth(
  'what an agent said last is put together of its pieces, and of a program it is the last of its output',
  async ({ root }) => {
    const said = (text: string, more = {}) => ({ seq: 1, kind: 'text', at, data: { text, ...more } })
    const other = (kind: string) => ({ seq: 1, kind, at, data: {} })
    const events = [said('Before.'), other('tool_call'), said('It '), said('is '), said('so.'), other('usage')]
    const runId = await seedRunning(root)
    const body = Buffer.from(events.map((event) => JSON.stringify(event)).join('\n') + '\n')
    await insertFrames(root, [{ ...frame(runId, 1, events.length), body }])
    const answerOf = async (harness: string) => (await findFinalAnswer(root, { id: idFrom(runId), harness }))?.text
    expect([await answerOf('claude'), await answerOf('command')]).toEqual(['It is so.', 'so.'])
  },
)
