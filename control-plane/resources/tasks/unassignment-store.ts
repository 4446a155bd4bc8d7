import type { AgentRef } from '../../../shared/lib/ids.ts'
import { time } from '../../db/columns.ts'
import { agentRef, workspaceUuid } from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** Deleted agents that have not been taken off all of their open tasks yet. None of these is restored meanwhile. */
const unassignments = table(
  'unassignments',
  { agentRef, workspaceId: workspaceUuid, createdAt: time },
  { columns: { agentRef: 'agent_id' } },
)
export type Unassignment = RowOf<typeof unassignments>

export async function insertUnassignment(db: Db, unassignment: Unassignment): Promise<void> {
  await unassignments.insert(db, unassignment)
}

/** Finds and locks it until the transaction ends; null when it is done, or somebody else has it. */
export async function claimUnassignment(db: Db, agentRef: AgentRef): Promise<Unassignment | null> {
  return unassignments.first(lockRows(unassignments.from(db).where({ agent_id: agentRef }), true))
}

/** Returns whether the agent is still on tasks of which its deletion takes it off. */
export async function isBeingUnassigned(db: Db, agentRef: AgentRef): Promise<boolean> {
  return (await unassignments.find(db, { agentRef })) !== null
}

export async function removeUnassignment(db: Db, agentRef: AgentRef): Promise<void> {
  await db('unassignments').where({ agent_id: agentRef }).delete()
}

/** Lists the agents that are left, longest deleted first. */
export async function listUnassignments(db: Db, limit: number): Promise<string[]> {
  return db('unassignments').orderBy(['created_at', 'agent_id']).limit(limit).pluck('agent_id')
}
