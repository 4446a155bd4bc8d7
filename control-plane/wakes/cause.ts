import type { Db } from '../db/open.ts'
import type { Caller } from '../http/callers.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import { findUserByPublicId } from '../resources/members/store.ts'
import { listLiveOfAgent } from '../resources/runs/live-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'

/** UUID of the person at the root of a chain of wakes; null when nobody is known. */

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
