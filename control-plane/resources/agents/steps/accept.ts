import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { replaceAgent, type AgentRow } from '../store.ts'
import { reconsiderWaiting } from './own/waiting-runs.ts'

/**
 * An agent that was given away runs on its new owner's devices once they agree: explicitly, or by their first start or
 * change of it. Then its waiting runs are placed again.
 */
export async function acceptAgent(
  db: Db,
  before: AgentRow,
  { caller, world }: { caller: Caller; world: World },
): Promise<AgentRow> {
  if (!isWordOfOwner(before, caller)) return before
  const now = world.now()
  const agent = { ...before, transferredAt: null, updatedAt: now }
  await replaceAgent(db, before, agent)
  await reconsiderWaiting(db, agent, now)
  return { ...agent, version: before.version + 1 }
}

/** Returns whether this caller's act is the agreement that the agent waits for. A change that an agent asked for does not count. */
export const isWordOfOwner = (agent: AgentRow, caller: Caller): boolean =>
  agent.transferredAt !== null &&
  caller.kind === 'person' &&
  caller.onBehalfOf === undefined &&
  caller.personUuid === agent.ownerUuid
