import type { RunId } from '../../../shared/lib/ids.ts'
import { reasoningEfforts, type RunSpec } from '../../../shared/runs/spec.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import { type RunRow, findRun } from '../../resources/runs/store.ts'
import { type HarnessName, harnessFactsOf } from '../../../shared/runs/harnesses.ts'
import type { RunEffect } from '../effects.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { publish } from '../../db/transaction.ts'
import { findAgent, type AgentRow } from '../../resources/agents/store.ts'
import { personOf } from '../../resources/devices/rules.ts'
import { findDeviceByPublicId, listDevicesOfWorkspace } from '../../resources/devices/store.ts'
import { accountOf, accountsOf, longestWindowMs, successorsInARow } from '../../resources/quotas/rules.ts'
import { closeQuota } from '../../resources/quotas/store.ts'
import type { WakeRow } from './wake-store.ts'
import { asked } from '../../trust/askers.ts'
import { withoutNews } from './decided-changes.ts'
import { requestWake, type RequestedWake } from './wakes.ts'
import type { ReadyWake } from './wake.ts'

// Runs that follow one which was stopped by its provider, and go on with its session, or whose session was gone.

const goOn = 'Go on where you stopped, and do nothing twice.\n\nWhat you were asked:\n\n'
/** The texts that stand before the prompt of the next run. A run that finds no session is told so itself. */
const stopped = {
  limit: `The limit of a provider stopped you in this work. ${goOn}`,
  failure: `The provider of your model failed in the middle of this work. ${goOn}`,
  lost_session: '',
  memory: `A sandbox had no memory left for this work. You are in a larger one now, with the files that you left. ${goOn}`,
}
type Stop = keyof typeof stopped

const keyOf = (stop: Stop, runId: RunId) => `after_${stop}:${runId}`

/** Asks for the run that follows this one. `prompt`: what this one was asked. */
export async function requestSuccessor(
  db: Db,
  run: RunRow,
  {
    stop,
    prompt,
    world,
    ...also
  }: { stop: Stop; prompt: string | null; world: World } & Pick<RequestedWake, 'allowCalls'>,
): Promise<void> {
  await requestWake(
    db,
    {
      workspaceId: run.workspaceId,
      agentRef: run.agentRef,
      // The work is that of the person who caused it, whosever device reported the stop.
      ...asked('manual', { stopped: run.causedByUuid }, run.wordsBy),
      requestedByRef: run.requestedByRef,
      prompt: `${stopped[stop]}${prompt ?? ''}`,
      taskId: run.taskId,
      conversationId: run.conversationId,
      parentRunId: run.id,
      key: keyOf(stop, run.id),
      ...also,
    },
    world,
  )
}

/** Tells whether a wake is that of a run which follows one that was stopped. */
export const isSuccessorWake = ({ key, parentRunId: id }: Pick<WakeRow, 'key' | 'parentRunId'>): boolean =>
  id !== null && (Object.keys(stopped) as Stop[]).some((stop) => key === keyOf(stop, id))

/**
 * Returns the run that was stopped, with its settings and its place in the queue, which its successor takes over; null: the wake follows
 * none that was stopped so.
 */
function asStopped(stop: Stop, key: string | null, run: RunRow | null) {
  if (run === null || key !== keyOf(stop, run.id)) return null
  const { environmentType: environment, inLineSince, createdAt } = run
  const reasoningEffort = reasoningEfforts.find((effort) => effort === run.reasoningEffort) ?? null
  return {
    run,
    inLineSince: inLineSince ?? createdAt,
    overrides: { environment, reasoningEffort },
  }
}

/**
 * An effect of a run's end: one whose provider failed is followed by one with the agent's backup model, which goes on with
 * the session, or else on its fallback harness. That one is followed by none.
 */
export const followFailure: RunEffect = async (db, run, { world, providerFailed = false }) => {
  if (!providerFailed || run.compacts || (await followsFailure(db, run))) return
  const details = await findDetails(db, run.id)
  if (details === null || insteadOf(details) === null) return
  await requestSuccessor(db, run, { stop: 'failure', prompt: details.prompt, world })
}

/** Returns what the run that follows a failure runs on, in the place of the failed one. */
export async function afterFailure(
  db: Db,
  key: string | null,
  parent: RunRow | null,
): Promise<Pick<ReadyWake, 'overrides' | 'inLineSince'>> {
  const failed = asStopped('failure', key, parent)
  const details = failed && (await findDetails(db, failed.run.id))
  const instead = details && insteadOf(details)
  if (failed === null || instead === null) return {}
  return { overrides: { ...failed.overrides, ...instead }, inLineSince: failed.inLineSince }
}

/** Returns the harness and model on which the failed run's successor runs; null: there is nothing else to run it on. */
function insteadOf(of: {
  spec: RunSpec
  fallbackSpec: RunSpec | null
}): { harness: HarnessName; model: string | null } | null {
  const { harness, model, backupModel } = of.spec
  const { changesModel, ignores } = harnessFactsOf(of.spec)
  const takesBackup = !changesModel && !ignores.includes('backupModel')
  if (takesBackup && backupModel !== null && backupModel !== model) return { harness, model: backupModel }
  return of.fallbackSpec && { harness: of.fallbackSpec.harness, model: of.fallbackSpec.model }
}

/** The run before it ended by a failure of its provider, too. */
const followsFailure = async (db: Db, { parentRunId }: RunRow): Promise<boolean> =>
  parentRunId !== null && (await findRun(db, parentRunId))?.providerFailed === true

/**
 * An effect of a run's end: a run that reached its account's limit, of which the harness says when it is over, closes the
 * account until then and is followed by one that goes on with its session. That one waits for the account, as all others do.
 */
export const followLimit: RunEffect = async (db, run, { at, world, exitReason, limitResetsAt }) => {
  if (exitReason !== 'rate_limited' || limitResetsAt == null || run.device === null) return
  const resetsAt = Math.min(limitResetsAt, at + longestWindowMs)
  await closeAccount(db, run, { at, resetsAt })
  if (run.compacts || !(await mayBeFollowed(db, run, limitResetsAt))) return
  const details = await findDetails(db, run.id)
  await requestSuccessor(db, run, { stop: 'limit', prompt: details?.prompt ?? null, world })
}

/**
 * An effect of a run's end: the session that it was to go on with is not on its device any more, so nothing was done. It is
 * followed at once by one that begins a new session. That one has none to lose.
 */
export const followLostSession: RunEffect = async (db, run, { world, sessionLost = false }) => {
  if (!sessionLost || run.compacts) return
  const details = await findDetails(db, run.id)
  if (details === null || details.spec.resumeSessionId === null) return
  const prompt = details.prompt === null ? null : withoutNews(details.prompt)
  const allowCalls = (await isOnOwnersDevice(db, run)) ? details.spec.allowCalls : []
  await requestSuccessor(db, run, { stop: 'lost_session', prompt, world, allowCalls })
}

/**
 * Tells whether the run was on a device of the agent's owner. Only the device says that nothing was done: a device of somebody else's
 * could lie, and have a call that a person allowed once made a second time, elsewhere; then the person is asked again.
 */
async function isOnOwnersDevice(db: Db, { agentRef, device: publicId }: RunRow): Promise<boolean> {
  const device = publicId === null ? null : await findDeviceByPublicId(db, publicId)
  const agent = await findAgent(db, agentRef)
  // A program that runs in a sandbox could speak for its runner.
  return device !== null && personOf(device) !== null && personOf(device) === agent?.ownerUuid
}

/** Closes the account with which the run worked, and tells its devices. */
async function closeAccount(
  db: Db,
  { workspaceId, device, harness, providerKeyId }: RunRow,
  { at, resetsAt }: { at: number; resetsAt: number },
): Promise<void> {
  const devices = await listDevicesOfWorkspace(db, workspaceId)
  const accounts = new Map(
    devices.map((row) => [
      row.publicId,
      accountOf({ ...row, accounts: accountsOf(row.providerReadiness) }, harness, providerKeyId),
    ]),
  )
  const account = device === null ? undefined : accounts.get(device)
  // A device that was removed meanwhile.
  if (account === undefined) return
  await closeQuota(db, { workspaceId, account, resetsAt, closedAt: at })
  for (const [publicId, own] of accounts)
    if (own === account) await publish(db, { topic: 'device.changed', key: publicId, at })
}

/**
 * A run that follows one which reached a limit, or lost its session, works as that one did, and has its place in the line. Where that
 * one was on the agent's fallback, the agent's own harness is as good again.
 */
export function asBefore(
  key: string | null,
  { parent, agent }: { parent: RunRow | null; agent: Pick<AgentRow, 'fallbackHarness'> },
): Pick<ReadyWake, 'overrides' | 'inLineSince'> {
  const before =
    asStopped('limit', key, parent) ?? asStopped('lost_session', key, parent) ?? asStopped('memory', key, parent)
  if (before === null) return {}
  const { harness, modelId: model } = before.run
  const overrides = { ...before.overrides, ...(harness !== agent.fallbackHarness && { harness, model }) }
  return { overrides, inLineSince: before.inLineSince }
}

/** Tells whether a run follows this one: not one that would find the same limit, nor runs without end. */
async function mayBeFollowed(db: Db, run: RunRow, limitResetsAt: number): Promise<boolean> {
  let before = await parentOf(db, run)
  const isSame = before?.limitResetsAt != null && before.device === run.device
  if (isSame && limitResetsAt <= before!.limitResetsAt!) return false
  for (let count = 0; before?.limitResetsAt != null; before = await parentOf(db, before))
    if (++count >= successorsInARow) return false
  return true
}

const parentOf = async (db: Db, { parentRunId }: RunRow) => (parentRunId === null ? null : findRun(db, parentRunId))
