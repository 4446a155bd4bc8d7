import type { RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int } from '../../db/columns.ts'
import { runId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'

/** A run with the fence that its holder has to name. */
export interface Lease {
  runId: RunId
  fence: number
}

export const leaseRow = z
  .looseObject({ id: runId, fence: int })
  .transform((r): Lease => ({ runId: r.id, fence: r.fence }))

const expired = query(
  `select id, fence from runs where ended_at is null and lease_state = 'offered' and offer_expires_at < ? limit ?`,
  leaseRow,
)

/** Offers whose time was up before `at`. */
export async function listExpiredOffers(db: Db, at: number, limit: number): Promise<Lease[]> {
  return expired.list(db, [at, limit])
}
