import { z } from 'zod'
import { int } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { returning } from '../../db/statement.ts'
import { parseRun, runColumns, type RunRow } from './store.ts'

/** The device that was offered a run takes it: offered -> claimed. */
export interface Claim {
  runId: string
  fence: number
  device: string
  at: number
}

/** A run as it is now, with what its start needs to know of its agent at this moment. */
export interface ClaimedRun {
  run: RunRow
  tokenGeneration: number
  hasSecrets: boolean
}

const row = z.looseObject({ token_generation: int, grants: int }).transform((r): ClaimedRun => ({
  run: parseRun(r),
  tokenGeneration: r.token_generation,
  hasSecrets: r.grants > 0,
}))

const take = `update runs
  set status = 'running', lease_state = 'claimed', started_at = ?, offer_expires_at = null, ungated_since = null
  where id = ? and fence = ? and device = ? and status = 'queued' and lease_state = 'offered' and ended_at is null`
const told = `returning ${runColumns},
  coalesce((select token_generation from agents where agents.id = runs.agent_id), 0) as token_generation,
  (select count(*) from secret_grants where secret_grants.agent_id = runs.agent_id) as grants`

const claimAny = returning(`${take} ${told}`, row)
const claimLone = returning(`${take} and task_id is null ${told}`, row)

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
