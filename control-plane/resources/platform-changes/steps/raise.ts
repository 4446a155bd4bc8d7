import type { PlatformChange } from '../../../../shared/api/agents.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { AnyRoute } from '../../../../shared/api/route.ts'
import type { AgentCaller } from '../../../http/callers.ts'
import { answer, type Answer, type HandlerInput } from '../../../http/implement.ts'
import { findAgent } from '../../agents/store.ts'
import { digestOf, ofRun, raiseApproval } from '../../approvals/steps/raise.ts'
import { findRun } from '../../runs/store.ts'
import { routeOf, shownChange } from '../present.ts'
import { insertPlatformChange } from '../store.ts'

/**
 * Stores an agent's write for approval and returns the 202 answer. The agent's run must still be live, since the
 * approval names it. The run continues and does not wait.
 */
export async function raisePlatformChange(
  input: Pick<HandlerInput<AnyRoute>, 'db' | 'world' | 'body' | 'client'>,
  change: { caller: AgentCaller; routeId: string; params: Record<string, unknown> },
): Promise<Answer<202, PlatformChange>> {
  const { db, world } = input
  const { caller, routeId, params } = change
  const run = await findRun(db, caller.runId)
  if (run === null || run.endedAt !== null || run.fence !== caller.fence) return fail('platform_change_requires_run')
  const id = world.id('apr_')
  const body: unknown = input.body ?? null
  await insertPlatformChange(db, {
    id,
    workspaceId: caller.workspaceId,
    agentRef: caller.agentRef,
    runId: caller.runId,
    routeId,
    params,
    body,
    source: input.client,
    createdAt: world.now(),
  })
  const { method, path } = shownChange({ routeId, params, body, result: null, source: input.client })
  const summary = routeOf(routeId)?.summary ?? routeId
  const agent = await findAgent(db, caller.agentRef)
  await raiseApproval(
    db,
    {
      ...ofRun(run),
      id,
      trigger: 'platform_change',
      prompt: `${agent?.name ?? 'An agent'} asks: ${summary} (${method} ${path})`,
      gatedThing: {
        kind: 'platform_change',
        name: routeId,
        inputDigest: digestOf([method, path, body]),
        safeSummary: `${method} ${path}`,
        scope: 'once',
      },
    },
    world,
  )
  return answer(202, { object: 'platform_change', approvalId: id, status: 'pending' })
}
