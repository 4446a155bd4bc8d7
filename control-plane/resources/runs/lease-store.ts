import { runId } from '../../db/id-columns.ts'
import type { DeviceRef, RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { query, returning } from '../../db/statement.ts'
import { runs, type RunRow } from './store.ts'

/**
 * The steps of a run's lease: none -> offered -> claimed, and back from offered. Each is a compare-and-set; a step that
 * another writer was first with changes nothing. A run that is inserted may be offered from the beginning (`insertRun`).
 */

export interface Offers {
  runIds: readonly RunId[]
  device: DeviceRef
  expiresAt: number
}

export interface Lease {
  runId: RunId
  fence: number
}

const lease = z.looseObject({ id: runId, fence: int }).transform((r): Lease => ({ runId: r.id, fence: r.fence }))

const offer = returning(
  `update runs set fence = fence + 1, lease_state = 'offered', device = ?, offer_expires_at = ?, event_seq = 0
   where id in ? and status = 'queued' and lease_state = 'none' and ended_at is null returning id, fence`,
  lease,
)

/** Offers queued runs to a device, each under a higher fence. Returns those that no other writer was first with. */
export async function offerRuns(db: Db, { runIds, device, expiresAt }: Offers): Promise<Lease[]> {
  return offer(db, [device, expiresAt, runIds])
}

/**
 * Takes an offer back; the run is queued again. The fence stays, so a late answer to it is refused by `lease_state`. With
 * `device` only an offer to that one.
 */
export async function withdrawOffer(db: Db, runId: RunId, fence: number, device?: DeviceRef): Promise<boolean> {
  const changed = await db('runs')
    .where({ id: runId, fence, status: 'queued', lease_state: 'offered', ...(device !== undefined && { device }) })
    .whereNull('ended_at')
    .update({ lease_state: 'none', device: null, offer_expires_at: null })
  return changed === 1
}

const expired = query(
  `select id, fence from runs where ended_at is null and lease_state = 'offered' and offer_expires_at < ? limit ?`,
  lease,
)

/** Offers whose time was up before `at`. */
export async function listExpiredOffers(db: Db, at: number, limit: number): Promise<Lease[]> {
  return expired.list(db, [at, limit])
}

/** The device that was offered a run takes it: offered -> claimed. */
export interface Claim extends Lease {
  device: DeviceRef
  at: number
}

/** A run as it is now, with what its start needs to know of its agent at this moment. */
export interface ClaimedRun {
  run: RunRow
  tokenGeneration: number
  hasSecrets: boolean
}

const claimedRow = z.looseObject({ token_generation: int, grants: int }).transform((r): ClaimedRun => ({
  run: runs.part(r),
  tokenGeneration: r.token_generation,
  hasSecrets: r.grants > 0,
}))

const take = `update runs
  set status = 'running', lease_state = 'claimed', started_at = ?, offer_expires_at = null, ungated_since = null
  where id = ? and fence = ? and device = ? and status = 'queued' and lease_state = 'offered' and ended_at is null`
const told = `returning ${runs.select()},
  coalesce((select token_generation from agents where agents.id = runs.agent_id), 0) as token_generation,
  (select count(*) from secret_grants where secret_grants.agent_id = runs.agent_id) as grants`

const claimAny = returning(`${take} ${told}`, claimedRow)
const claimLone = returning(`${take} and task_id is null ${told}`, claimedRow)

/** Repeating it changes nothing: null. */
export async function claimRun(db: Db, claim: Claim): Promise<ClaimedRun | null> {
  const [claimed] = await claimAny(db, valuesOf(claim))
  return claimed ?? null
}

/** Claims a run that works on no task, with whose start nothing else changes: no transaction is needed around it. */
export async function claimLoneRun(db: Db, claim: Claim): Promise<ClaimedRun | null> {
  const [claimed] = await claimLone(db, valuesOf(claim))
  return claimed ?? null
}

const valuesOf = ({ at, runId, fence, device }: Claim) => [at, runId, fence, device]
