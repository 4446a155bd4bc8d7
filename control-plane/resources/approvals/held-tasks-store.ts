import { z } from 'zod'
import { int } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import type { AgentRow } from '../agents/store.ts'
import { holdingTriggers } from './rules.ts'

/** A task that waits for a person: an approval that holds it, or a question, is open. */
const held = `(
  exists (select 1 from approvals where task_id = tasks.id and status = 'open' and "trigger" in ?)
  or exists (select 1 from questions where task_id = tasks.id and status = 'open'))`
const open = `from tasks where assignee_agent_id = ? and archived_at is null and status not in ('done', 'cancelled')`

const holds = query(
  `select case when exists (select 1 ${open})
     and not exists (select 1 ${open} and not ${held}) then 1 else 0 end as holds`,
  z.object({ holds: int }),
)

/** Returns whether the agent has open tasks, and all of them wait for people. */
export async function hasOnlyHeldTasks(db: Db, { id }: Pick<AgentRow, 'id'>): Promise<boolean> {
  return (await holds.first(db, [id, id, holdingTriggers]))?.holds === 1
}
