import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { dialectOfDb } from '../../control-plane/db/dialect.ts'
import type { WorkerMessage } from '../../control-plane/process/worker-pool.ts'
import type { ProgramCall, Replayed, ReplayInput } from '../../control-plane/workflows/engine/words.ts'
import { encodeFrame } from '../../shared/device/frame.ts'
import { endReport } from '../../test/kit/end-report.ts'
import type { Context } from './context.ts'
import type { DeviceSocket } from './device-socket.ts'
import {
  doOffered,
  flowEnded,
  programOf,
  startFlow,
  storeProgram,
  takeOffered,
  type WorkflowStack,
} from './workflow-stack.ts'

interface OfferedRun {
  runId: RunId
  fence: number
}

/** What a step gives back. */
const resultText = 'x'.repeat(2_048)

/** The engine's own worker, without the pool, the database and the server around it. */
export interface BareEngine {
  replay(input: ReplayInput): Promise<Replayed & { kind: 'replayed' }>
  end(): Promise<void>
}

export async function startBareEngine({ dist }: Pick<Context, 'dist'>): Promise<BareEngine> {
  const worker = new Worker(join(dist, 'control-plane/workflows/engine/main.js'), {
    env: {},
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
  })
  const answer = async () => ((await once(worker, 'message')) as [WorkerMessage])[0].answer
  await answer()
  return {
    async replay(input) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
      worker.postMessage({ name: 'replay', input })
      const { value } = (await answer()) as { value: Replayed }
      if (value.kind !== 'replayed') throw new Error(`the replay of the journal came to ${JSON.stringify(value)}`)
      return value
    },
    async end() {
      await worker.terminate()
    },
  }
}

/** A program of this many agent steps, one after another, and its calls as the engine makes them. */
export interface Journal {
  name: string
  steps: number
  calls: readonly ProgramCall[]
  /** With the results of all steps but the last one, which it makes the program begin. */
  input: ReplayInput
}

export async function makeJournal(
  engine: BareEngine,
  { server, agentId }: WorkflowStack,
  steps: number,
): Promise<Journal> {
  const name = `steps_${steps}`
  const step = `await agent(\`Do part \${at}.\`, { agent: '${agentId}', label: \`part \${at}\` })`
  const source = programOf(name, `let said\nfor (let at = 0; at < ${steps}; at++) said = ${step}\nreturn 'done'`)
  await storeProgram(server, source)
  const at = Date.now()
  const results = Array.from({ length: steps - 1 }, (_, seq) => ({
    seq,
    at,
    isValue: true,
    text: JSON.stringify(resultText),
  }))
  const fresh = { source, input: '{}', seed: 'flr_0000000000000000', startedAt: at, journalBytes: 0, results }
  const { calls } = await engine.replay({ ...fresh, known: [] })
  if (calls.length !== steps) throw new Error(`the program made ${calls.length} calls instead of ${steps}`)
  const known = calls.slice(0, -1).map(({ digest }) => digest)
  return { name, steps, calls, input: { ...fresh, known, journalBytes: bytesOf(calls, steps - 1) } }
}

const bytesOf = (calls: readonly ProgramCall[], results: number) =>
  calls.reduce((sum, { args }) => sum + args.length, 0) + results * (resultText.length + 2)

export async function bareReplayMs(engine: BareEngine, { input }: Journal): Promise<number> {
  const start = performance.now()
  const { calls } = await engine.replay(input)
  const ms = performance.now() - start
  if (calls.length !== 1) throw new Error(`the replay made ${calls.length} new calls instead of one`)
  return ms
}

/**
 * From the end of the run that does the last step but one, to the offer of the run that does the last one. The server has done
 * the step before them, so it knows the journal as it does in a program that goes its way.
 */
export async function advanceMs(stack: WorkflowStack, journal: Journal): Promise<number> {
  const { device } = stack
  const flow = await startFlow(stack.server, journal.name)
  const { runId } = await device.peek('run.offer')
  await writePast(stack, { flow, runId, journal })
  await settleWrites(stack)
  await endWithResult(device, await takeOffered(device))
  await device.next('run.closed')
  const run = await takeOffered(device)
  await settleWrites(stack)
  await sendResult(device, run)
  const start = performance.now()
  sendEnd(device, run)
  const next = await device.peek('run.offer')
  const ms = performance.now() - start
  if (next.runId === run.runId) throw new Error('the same run was offered again')
  await device.next('run.closed')
  await doOffered(device)
  await flowEnded(stack, flow)
  return ms
}

/**
 * Makes the first step, whose run was just offered, the last one but two, and writes those before it as the server would have:
 * calls with their results, and runs that have ended.
 */
async function writePast(
  { root }: WorkflowStack,
  { flow, runId, journal: { calls, steps } }: { flow: string; runId: string; journal: Journal },
): Promise<void> {
  await root.transaction(async (tx) => {
    const run = (await tx('runs').where({ id: runId }).first()) as Record<string, unknown>
    const call = (await tx('workflow_calls').where({ workflow_run_id: flow, seq: 0 }).first()) as Record<
      string,
      unknown
    >
    const at = Number(run['created_at'])
    const live = steps - 3
    const callAt = (seq: number) => ({ seq, step_ordinal: seq, args: calls[seq]!.args, digest: calls[seq]!.digest })
    await tx('workflow_calls').where({ workflow_run_id: flow, seq: 0 }).update(callAt(live))
    await tx('runs').where({ id: runId }).update({ workflow_call: live })
    const past = Array.from({ length: live }, (_, seq) => seq)
    const text = JSON.stringify(resultText)
    const handed = { is_value: 1, result: text, ended_at: at, resumed_at: at, advanced_at: at }
    await tx.batchInsert(
      'workflow_calls',
      past.map((seq) => ({ ...call, ...callAt(seq), ...handed, handed_order: seq })),
      50,
    )
    const ended = { status: 'succeeded', exit_reason: 'completed', lease_state: 'none', ended_at: at }
    await tx.batchInsert(
      'runs',
      past.map((seq) => ({ ...run, ...ended, id: pastId(flow, seq), workflow_call: seq })),
      20,
    )
    await tx('workflow_runs')
      .where({ id: flow })
      .update({ journal_bytes: bytesOf(calls.slice(0, live + 1), live) })
  })
}

/** Otherwise the server would write what was written past it to the file of SQLite while it is measured. */
async function settleWrites({ root }: WorkflowStack): Promise<void> {
  if (dialectOfDb(root) === 'sqlite') await root.raw('pragma wal_checkpoint(truncate)')
}

const pastId = (flow: string, seq: number) => {
  const hash = createHash('sha256').update(`${flow}/${seq}`).digest('hex')
  return idFrom<RunId>(`run_${hash.slice(0, 16)}`)
}

const sendEnd = (device: DeviceSocket, run: OfferedRun) =>
  device.send({ type: 'run.ended', ...run, report: endReport({ eventCount: 1 }) })

async function endWithResult(device: DeviceSocket, run: OfferedRun): Promise<void> {
  await sendResult(device, run)
  sendEnd(device, run)
}

/** What the step's agent says last, stored before its run ends. */
async function sendResult(device: DeviceSocket, run: OfferedRun): Promise<void> {
  const event = { seq: 1, at: Date.now(), kind: 'result', data: { text: resultText, isError: false } }
  const body = Buffer.from(`${JSON.stringify(event)}\n`)
  const sha256 = createHash('sha256').update(body).digest('hex')
  device.socket.send(
    encodeFrame({ type: 'run.events', ...run, firstSeq: 1, lastSeq: 1, kinds: { result: 1 }, sha256 }, body),
  )
  await device.next('ack')
}
