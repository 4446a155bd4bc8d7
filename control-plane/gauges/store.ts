import { z } from 'zod'
import { linkLimits } from '../../shared/device/limits.ts'
import { int, nullableTime, text } from '../db/columns.ts'
import type { Askable } from '../db/open.ts'
import { inKeptWorkspace } from '../db/removed.ts'
import { query } from '../db/statement.ts'

// What is counted of all workspaces when the metrics are read. Each is one statement that reads an index which holds nothing but what is
// counted, so its cost depends neither on how many runs have ended nor on how long the server has been there.

/** How many there are of a kind. */
export interface KindCount {
  kind: string
  count: number
  /** When (ms) the first of them was made, or became due; null: there is none. */
  oldestAt: number | null
}

const counted = z
  .object({ kind: text, n: int, oldest: nullableTime })
  .transform((r): KindCount => ({ kind: r.kind, count: r.n, oldestAt: r.oldest }))

/** The phase is that of `phaseOf` (`run/life.ts`). Of a removed workspace runs end within seconds, one batch after another. */
const runsByPhase = query(
  `select case when lease_state = 'none' then 'waiting' when lease_state = 'offered' then 'offered'
     when cancel_requested_at is null then 'running' else 'stopping' end as kind, count(*) as n, min(created_at) as oldest
   from runs where ended_at is null group by 1`,
  counted,
)

const approvalsByTrigger = query(
  `select "trigger" as kind, count(*) as n, min(created_at) as oldest from approvals
   where status = 'open' and ${inKeptWorkspace('approvals')} group by "trigger"`,
  counted,
)

const questions = query(
  `select 'open' as kind, count(*) as n, min(created_at) as oldest from questions
   where status = 'open' and ${inKeptWorkspace('questions')}`,
  counted,
)

const wakes = query(
  `select 'waiting' as kind, count(*) as n, min(created_at) as oldest from wakes where state = 'waiting'`,
  counted,
)

const deliveriesIn = (state: string) =>
  `select '${state}' as kind, count(*) as n, min(due_at) as oldest from github_deliveries where state = '${state}'`
const deliveries = query(`${deliveriesIn('waiting')} union all ${deliveriesIn('failed')}`, counted)

/** Devices of people; those of sandboxes come and go with their runs. */
const devices = query(
  `select case when coalesce(last_heartbeat_at, created_at) < ? then 'retired'
     when replica_id is not null and last_heartbeat_at >= ? then 'linked' else 'not_linked' end as kind,
     count(*) as n, min(last_heartbeat_at) as oldest
   from devices where removed_at is null and sandbox_id is null and ${inKeptWorkspace('devices')} group by 1`,
  counted,
)

export const countRunsByPhase = (db: Askable): Promise<KindCount[]> => runsByPhase.list(db, [])
export const countOpenApprovals = (db: Askable): Promise<KindCount[]> => approvalsByTrigger.list(db, [])
export const countOpenQuestions = (db: Askable): Promise<KindCount[]> => questions.list(db, [])
export const countWaitingWakes = (db: Askable): Promise<KindCount[]> => wakes.list(db, [])
/** Deliveries of GitHub that wait, and those that were given up in the time for which they are kept. */
export const countDeliveries = (db: Askable): Promise<KindCount[]> => deliveries.list(db, [])
/** By whether a replica holds their link, as `isLinked` and `livenessOf` say (`resources/devices/rules.ts`). */
export const countDevicesByLink = (
  db: Askable,
  { now, leaseMs }: { now: number; leaseMs: number },
): Promise<KindCount[]> => devices.list(db, [now - linkLimits.retireMs, now - leaseMs])
