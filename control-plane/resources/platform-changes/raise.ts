import type { PlatformChange } from '../../../shared/api/agents.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { AgentCaller } from '../../http/callers.ts'
import { answer, type Answer, type HandlerInput } from '../../http/implement.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { findRun } from '../runs/store.ts'
import { insertPlatformChange } from './store.ts'

/**
 * Stores an agent's write for approval and gives the 202 (document 1, "Agents"). The agent's run must still live: what
 * asks for a change is named to the person who approves it.
 */
export async function raisePlatformChange(
  input: Pick<HandlerInput<AnyRoute>, 'db' | 'world' | 'body'>,
  change: { caller: AgentCaller; routeId: string; params: Record<string, unknown> },
): Promise<Answer<202, PlatformChange>> {
  const { db, world } = input
  const { caller } = change
  const run = await findRun(db, caller.runId)
  if (run === null || run.endedAt !== null || run.fence !== caller.fence) fail('platform_change_requires_run')
  const id = world.id('apr_')
  await insertPlatformChange(db, {
    id,
    workspaceId: caller.workspaceId,
    agentId: caller.agentId,
    runId: caller.runId,
    routeId: change.routeId,
    params: change.params,
    body: input.body,
    createdAt: world.now(),
  })
  return answer(202, { object: 'platform_change', approvalId: id, status: 'pending' })
}
