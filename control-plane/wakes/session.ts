import type { HarnessName } from '../../shared/runs/harnesses.ts'
import type { Db } from '../db/open.ts'
import type { AgentRow } from '../resources/agents/store.ts'
import { findLastWithSession, type RunRow } from '../resources/runs/store.ts'

/** The place of a new run. A session is continued only in the same place. */
export interface SessionPlace {
  agent: AgentRow
  harness: HarnessName
  folderId: string | null
  /** Sessions begun before it are not gone on with. */
  freshSince: number | null
}

/**
 * A session is gone on with where it lies: same harness, its folder was not exchanged for another, and sessions were not
 * reset since.
 */
export function isResumable(parent: RunRow, { agent, harness, folderId, freshSince }: SessionPlace): boolean {
  if (!parent.sessionId || parent.agentId !== agent.id) return false
  if (parent.createdAt <= Math.max(agent.sessionsResetAt ?? -1, freshSince ?? -1)) return false
  return parent.harness === harness && parent.folderId === folderId
}

/** The run that the next one of the agent on the same task, or in the same conversation, continues; null: begin anew. */
export async function findContinued(
  db: Db,
  of: { taskId: string | null; conversationId: string | null },
  place: SessionPlace,
): Promise<RunRow | null> {
  const last = await findLastWithSession(db, { agentId: place.agent.id, ...of })
  return last !== null && isResumable(last, place) ? last : null
}
