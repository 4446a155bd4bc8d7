import { hasPrefix, type ActorRef } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import type { Person } from '../../trust/rules.ts'
import { findAgent } from '../agents/store.ts'
import { personOf } from '../devices/rules.ts'
import { findDeviceByPublicId } from '../devices/store.ts'
import { findUserByPublicId } from '../members/store.ts'
import { listLiveOfAgent } from './live-store.ts'
import { findRun, type RunRow } from './store.ts'

// Functions that return the UUID of the person at the root of a chain of wakes, and null when nobody is known.

/**
 * Returns the person behind a request of this run: the one whose wake it works from, if it runs on a device of theirs and follows
 * the words of nobody else. Whoever owns the device has the run's token, and would else act for that person. In a sandbox the program
 * has it, which the agent's owner decides, and nobody has let that program act for them; so there it is the owner's own wake alone.
 */
export async function causeThrough(
  db: Db,
  run: Pick<RunRow, 'causedByUuid' | 'wordsBy' | 'device' | 'agentRef'>,
): Promise<Person> {
  if (run.causedByUuid === null || run.device === null || run.wordsBy.length > 0) return null
  const device = await findDeviceByPublicId(db, run.device)
  const holder = device && (personOf(device) ?? (await findAgent(db, run.agentRef))?.ownerUuid)
  return holder === run.causedByUuid ? run.causedByUuid : null
}

/**
 * Returns the person behind a `usr_` or `agt_` id; null for the platform. Of an agent, its runs at work count; null where they are not all
 * of one person's cause.
 */
export async function causeOf(db: Db, publicId: ActorRef | null): Promise<Person> {
  if (publicId === null) return null
  if (!hasPrefix(publicId, 'agt_')) return (await findUserByPublicId(db, publicId))?.id ?? null
  const atWork = (await listLiveOfAgent(db, publicId)).filter((run) => run.status !== 'queued')
  const causes = new Set<Person>()
  for (const run of atWork) causes.add(await causeThrough(db, run))
  return causes.size === 1 ? [...causes][0]! : null
}

/** Returns the person behind whoever calls a route. */
export async function causeOfCaller(db: Db, caller: Caller): Promise<Person> {
  if (caller.kind === 'person') return caller.personUuid
  const run = await findRun(db, caller.runId)
  return run === null ? null : causeThrough(db, run)
}

/** The people whose words a run follows, whoever asked for it among them. */
export const speakersOf = (run: Pick<RunRow, 'causedByUuid' | 'wordsBy'> | null): Person[] =>
  run === null ? [null] : [run.causedByUuid, ...run.wordsBy]
