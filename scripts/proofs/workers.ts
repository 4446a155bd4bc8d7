import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunEvent } from '../../shared/api/run-events.ts'
import type { RunDetail } from '../../shared/api/runs.ts'
import { changeSetIsRight, goneMs } from '../../test/kit/invariants.ts'
import { delay, nothingNames, waitFor } from '../../test/kit/programs.ts'
import type { TestApi } from '../../test/kit/system-api.ts'
import { makeRepo, printedLines, scenario, shellIn, type Scenario } from '../../test/kit/system-scenario.ts'
import { judge, type Excuses } from './judge.ts'
import type { Broken } from './promises.ts'
import type { Stage } from './stage.ts'

// Who works all the time, whatever happens to the system, and looks at what became of it.

/** A run that has no ending by then has lost it. */
const patienceMs = 180_000
const lines = 120

export interface Ended {
  runId: string
  run: RunDetail
  seenAt: number
}

export interface Worked {
  ended: readonly Ended[]
  /** All that were asked for, with how often the harness of each was started until now. */
  starts: () => Readonly<Record<string, number>>
}

/** An agent whose runs write numbered lines and change files. Made before anything strikes. */
export function newWorker({ api, system }: Stage): Promise<Scenario> {
  const change = ['write=made.txt:made', 'append=README.md:more']
  const steps = ['rate=200', `lines=${lines - 40}`, ...change, 'lines=40', 'touch=GATES/done']
  return scenario(system, { steps, api })
}

/** Starts one run after another, and judges each. */
export async function work(stage: Stage, worker: Scenario, over: () => boolean): Promise<Worked> {
  const ended: Ended[] = []
  const asked: string[] = []
  while (!over()) {
    // What the last run made is none of the next one's.
    shellIn(worker.folder, 'git reset -q --hard; git clean -qfd')
    const done = join(worker.gates, 'done')
    rmSync(done, { force: true })
    const from = Date.now()
    const runId = await begin(stage, worker.agentId, 'Do it.')
    const { run, seenAt } = await outcome(stage, runId, from)
    asked.push(runId)
    if (run === 'unknown') {
      // The server was restored: its device ends it.
      await nothingNames(runId, goneMs)
      stage.account.tried('starts')
      continue
    }
    await examine(stage, worker, { runId, run, from, seenAt, done })
    if (run !== null) ended.push({ runId, run, seenAt })
  }
  return { ended, starts: () => Object.fromEntries(asked.map((runId) => [runId, worker.starts(runId)])) }
}

/** Asked again under one key until it is taken. */
function begin({ api }: Stage, agentId: string, prompt: string): Promise<string> {
  const key = crypto.randomUUID()
  return waitFor(() => api.startRun(agentId, prompt, key), 'a run is taken', { ms: patienceMs })
}

/** The run once it has ended; null: it did not in time; `unknown`: it was made after the backup that the server was restored from. */
async function outcome(
  { api, absences }: Stage,
  runId: string,
  from: number,
): Promise<{ run: RunDetail | 'unknown' | null; seenAt: number }> {
  const deadline = performance.now() + patienceMs
  while (performance.now() < deadline) {
    const answer = await api.raw('GET', `/runs/${runId}`).catch(() => null)
    const seenAt = Date.now()
    if (answer?.status === 404 && absences.met('state', { from, to: seenAt })) return { run: 'unknown', seenAt }
    const run = answer?.status === 200 ? (answer.body as RunDetail) : null
    // The server may be killed before others hear of an ending, which is true when it was read.
    if (run !== null && run.completedAt !== null) return { run, seenAt }
    await delay(50)
  }
  return { run: null, seenAt: Date.now() }
}

interface Seen {
  runId: string
  run: RunDetail | null
  from: number
  seenAt: number
  /** The file that the harness makes at its end. */
  done: string
}

async function examine(stage: Stage, worker: Scenario, { runId, run, from, seenAt, done }: Seen): Promise<void> {
  const { account, absences, killed, system } = stage
  const time = { from, to: seenAt }
  await nothingNames(runId, goneMs)
  const isDone = existsSync(done)
  const doneAt = isDone ? statSync(done).mtimeMs : null
  const events = run === null ? [] : await eventsOf(stage, runId, from)
  // It ended, and then the servers were restored from a backup that is older than the run.
  if (events === 'unknown') return account.tried('starts')
  killed.read(system.device.log)
  const exitReason = run?.exitReason ?? null
  const changeSet = run === null ? null : await changeSetOf(stage, runId)
  const excuses = {
    isKilled: killed.had(runId) || (exitReason === 'crashed' && killed.mayHaveHad(time)),
    hadFullDisk: absences.met('disk', time),
    isRestored: absences.met('state', { from, to: Date.now() }),
  }
  for (const promise of ['events', 'starts', 'ending', 'truth'] as const) account.tried(promise)
  const isCompared = changeSet !== null && !excuses.isRestored
  if (isCompared) account.tried('changes')
  const printed = printedLines(lines)
  account.add(
    judge({
      runId,
      exitReason,
      events,
      starts: worker.starts(runId),
      isDone,
      printed,
      compareChanges: isCompared ? () => isWhole(changeSet, worker.folder, excuses) : null,
      excuses,
    }),
  )
  const returnMs = run !== null && doneAt !== null ? absences.returnMs({ from: doneAt, to: seenAt }) : null
  if (returnMs !== null && !excuses.isRestored) account.returned(returnMs)
}

/** `unknown`: the run was made after the backup that the servers were restored from. */
const eventsOf = ({ api, absences }: Stage, runId: string, from: number): Promise<RunEvent[] | 'unknown'> =>
  patiently(async () => {
    const { status } = await api.raw('GET', `/runs/${runId}`)
    if (status === 404 && absences.met('state', { from, to: Date.now() })) return 'unknown'
    return api.events(runId)
  })

/** A run may have none where its host was killed before there was a base, and where the disk had no room for it. It says so. */
function isWhole(changeSet: ChangeSet | { missing: string }, folder: string, { isKilled, hadFullDisk }: Excuses): void {
  if (!('missing' in changeSet)) return changeSetIsRight(folder, changeSet)
  if (!isKilled && !hadFullDisk) throw new Error(`it has no change-set: ${changeSet.missing}`)
}

type ChangeSet = Awaited<ReturnType<TestApi['changeSet']>>

/** The change-set, or what the run says instead. */
async function changeSetOf({ api }: Stage, runId: string): Promise<ChangeSet | { missing: string }> {
  return patiently(async () => {
    const { status, body } = await api.raw('GET', `/runs/${runId}/change-set`)
    if (status === 200) return body as ChangeSet
    const { error } = body as { error: { code: string; message: string } }
    // All other failures are of a server, or a device, that is not quite there.
    const isTold = status < 500 && error.code !== 'repo_unavailable'
    if (!isTold && error.code !== 'diff_unavailable') throw new Error(`the change-set answers ${error.code}`)
    return { missing: `${error.code}: ${error.message}` }
  })
}

const patiently = <Value>(ask: () => Promise<Value>) => waitFor(ask, 'the server answers', { ms: 60_000 })

/** Ends that have changed after they were told. */
export async function changedEndings(stage: Stage, all: readonly Ended[]): Promise<string[]> {
  const changed: string[] = []
  for (const { runId, run, seenAt } of all) {
    if (stage.absences.met('state', { from: seenAt - 60_000, to: Date.now() })) continue
    const now = await stage.api.run(runId)
    const same = now.exitReason === run.exitReason && now.completedAt === run.completedAt
    if (!same) changed.push(runId)
  }
  return changed
}

/** A call that was asked for, how often it was made until now, and how often that was allowed. */
interface Guarded {
  runId: string
  made: () => number
  allowed: number
  from: number
}

/** An agent that asks before its one call. */
export interface Asking {
  agentId: string
  folder: string
}

export async function newAsking({ api, system }: Stage): Promise<Asking> {
  const folder = join(system.root, 'guarded')
  makeRepo(folder)
  const { publicId } = system.device.identity
  const { shortId } = await api.addFolder({ displayName: 'guarded', rootPath: folder, deviceId: publicId })
  const agent = await api.createAgent({ name: 'Guarded', harness: 'claude', defaultFolderId: shortId })
  const tools = { ask: ['Bash'], defaultMode: 'full' }
  await api.call('PUT', `/agents/${agent.id}/config`, { config: { permissions: { tools } } })
  return { agentId: agent.id, folder }
}

/**
 * Has calls asked for, of which some are approved and some are not. Answers which of them were made too often until it is asked: one
 * may be made again long after its run has ended.
 */
export async function guard(stage: Stage, { agentId, folder }: Asking, over: () => boolean): Promise<() => Broken[]> {
  const { account, random } = stage
  const guarded: Guarded[] = []
  for (let round = 1; !over(); round++) {
    writeFileSync(join(folder, 'ask'), String(round))
    const made = () => countLines(join(folder, `made-${round}`))
    const from = Date.now()
    const runId = await begin(stage, agentId, `Make ${round}.`)
    const { run } = await outcome(stage, runId, from)
    await nothingNames(runId, goneMs)
    account.tried('gates')
    if (made() > 0) account.add([{ promise: 'gates', runId, why: 'its call was made before anybody was asked' }])
    const call: Guarded = { runId, made, allowed: 0, from }
    guarded.push(call)
    if (run === 'unknown' || run?.exitReason !== 'approval_requested') continue
    const approvals = await patiently(() => pendingOf(stage, runId))
    const isApproved = random() < 0.5
    if (isApproved) call.allowed = approvals.length
    for (const { id } of approvals) await decide(stage, id, isApproved ? 'approve' : 'reject')
    if (isApproved) await waitFor(() => made() > 0, 'the call is made', { ms: 15_000 }).catch(() => undefined)
  }
  // A restored server does not know which calls that it allows were made since.
  const isKnown = ({ from }: Guarded) => !stage.absences.met('state', { from, to: Date.now() })
  const isTooOften = (call: Guarded) => call.made() > call.allowed && (call.allowed === 0 || isKnown(call))
  return () =>
    guarded.filter(isTooOften).map(({ runId, made, allowed }) => {
      return { promise: 'gates', runId, why: `its call was made ${made()} times, and allowed ${allowed} times` }
    })
}

async function pendingOf({ api }: Stage, runId: string): Promise<{ id: string }[]> {
  const { data } = await api.call<{ data: { id: string; runId?: string | null }[] }>(
    'GET',
    `/approvals?status=open&runId=${runId}`,
  )
  return data
}

/** It may be gone where the server was restored. */
async function decide({ api }: Stage, id: string, verb: 'approve' | 'reject'): Promise<void> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  await patiently(async () => {
    const { status } = await api.raw('POST', `/approvals/${id}/${verb}`, { body: {}, headers })
    return status < 500
  })
}

const countLines = (file: string): number =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).length : 0
