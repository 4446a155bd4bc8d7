import type { TriggerSource } from '../../shared/api/runs.ts'
import type { World } from '../../shared/lib/world.ts'
import type { AllowedCall } from '../../shared/runs/spec.ts'
import type { Db } from '../db/open.ts'
import { publish } from '../db/transaction.ts'
import type { Caller } from '../http/callers.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import { findUserByPublicId } from '../resources/members/store.ts'
import { listLiveOfAgent } from '../resources/runs/live-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import { insertWakes, type NewWake } from './wake-store.ts'

export interface WakeRequest {
  workspaceId: string
  agentId: string
  triggerSource: TriggerSource
  /** Public id of the person (`usr_`) or agent (`agt_`) behind the wake. */
  requestedBy: string | null
  /** UUID of the person at the root of its chain of wakes; without it, `requestedBy` says who. */
  causedBy?: string | null
  prompt: string
  /** `tsk_` id of the task the run is to work on. */
  taskId?: string | null
  /** The conversation the run answers in. Runs of one agent in one conversation follow one another. */
  conversationId?: string | null
  /** The run whose harness session is gone on with. Default: the agent's last ended one of the task, else of the conversation. */
  continues?: string | null
  /** Tool calls that a person approved; each is allowed once. */
  allowCalls?: readonly AllowedCall[]
  /** A second request with the same key in the workspace is the same wake. */
  key?: string
}

/**
 * Asks for a run, in the transaction of what is the reason for it. The waker makes the run after the commit, exactly
 * once. A wake that admission refuses is dropped: what lets it through later sends a wake of its own.
 */
export const requestWake = (db: Db, request: WakeRequest, world: World): Promise<void> =>
  requestWakes(db, [request], world)

/** The same for many, written together. */
export async function requestWakes(db: Db, requests: readonly WakeRequest[], world: World): Promise<void> {
  const at = world.now()
  const causes = new Map<string | null, string | null>()
  const rows: NewWake[] = []
  for (const request of requests) {
    const { requestedBy } = request
    // Now, since the run of an agent that asks lives now.
    if (request.causedBy === undefined && !causes.has(requestedBy))
      causes.set(requestedBy, await causeOf(db, requestedBy))
    rows.push({
      id: world.id('wak_'),
      workspaceId: request.workspaceId,
      agentId: request.agentId,
      triggerSource: request.triggerSource,
      requestedBy,
      causedByUserId: request.causedBy === undefined ? (causes.get(requestedBy) ?? null) : request.causedBy,
      prompt: request.prompt,
      taskId: request.taskId ?? null,
      conversationId: request.conversationId ?? null,
      continuesRunId: request.continues ?? null,
      allowCalls: [...(request.allowCalls ?? [])],
      key: request.key ?? null,
      createdAt: at,
    })
  }
  const added = await insertWakes(db, rows)
  for (const { id } of rows) if (added.has(id)) await publish(db, { topic: 'wake.requested', key: id, at })
}

/** The functions below return the UUID of the person at the root of a chain of wakes, and null when nobody is known. */

/**
 * Returns the person behind a request of this run: the one whose wake it works from, if it runs on a device of theirs. Whoever
 * owns the device has the run's token, and would else act for that person.
 */
export async function causeThrough(db: Db, run: Pick<RunRow, 'causedByUserId' | 'device'>): Promise<string | null> {
  if (run.causedByUserId === null || run.device === null) return null
  const device = await findDeviceByPublicId(db, run.device)
  return device?.userId === run.causedByUserId ? run.causedByUserId : null
}

/**
 * The same by `requestedBy`: a `usr_` or `agt_` id, null for the platform. Of an agent, its runs at work count; answers
 * null where they are not all of one person's cause.
 */
export async function causeOf(db: Db, requestedBy: string | null): Promise<string | null> {
  if (requestedBy === null) return null
  if (!requestedBy.startsWith('agt_')) return (await findUserByPublicId(db, requestedBy))?.id ?? null
  const atWork = (await listLiveOfAgent(db, requestedBy)).filter((run) => run.status !== 'queued')
  const causes = new Set<string | null>()
  for (const run of atWork) causes.add(await causeThrough(db, run))
  return causes.size === 1 ? [...causes][0]! : null
}

/** The same for who calls a route. */
export async function causeOfCaller(db: Db, caller: Caller): Promise<string | null> {
  if (caller.kind === 'person') return caller.userId
  const run = await findRun(db, caller.runId)
  return run === null ? null : causeThrough(db, run)
}
