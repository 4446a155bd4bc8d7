import { agentUpkeepRoutes } from '../../../../shared/api/agent-upkeep.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { forgetSessions } from '../../runs/steps/forget-sessions.ts'
import type { AuditAgent } from '../audit.ts'
import { insertHistory } from '../own/history-store.ts'
import { changeableAgent, readableAgent } from '../lookup.ts'
import { authorRefOf, storeAgent, workspaceOf } from '../steps/store-agent.ts'

type Dependencies = Pick<ResourceDependencies, 'catalog' | 'leaseMs'> & { audit: AuditAgent }

export function agentUpkeepHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(agentUpkeepRoutes, {
    async audit({ db, caller, params, world }) {
      const agent = await readableAgent(db, caller, params.agentId)
      const workspace = await workspaceOf(db, caller)
      return { agentId: agent.id, audit: await deps.audit(db, { agent, workspace }, world.now()) }
    },

    sessionsReset: resetSessions,
  })
}

/**
 * Raises the generation of the agent's tokens, which invalidates those of its live runs, and keeps later runs from
 * continuing present sessions. A waiting run forgets the session it was to continue.
 */
async function resetSessions(input: HandlerInput<typeof agentUpkeepRoutes.sessionsReset>) {
  const { db, caller, params, world } = input
  const before = await changeableAgent(db, caller, params.agentId)
  if (caller.kind === 'agent') {
    const change = { caller, routeId: agentUpkeepRoutes.sessionsReset.id, params: { agentId: before.id } }
    return raisePlatformChange({ ...input, body: null }, change)
  }
  const now = world.now()
  const after = { ...before, tokenGeneration: before.tokenGeneration + 1, sessionsResetAt: now }
  const { agent } = await storeAgent(db, { before, after, caller, world })
  await insertHistory(db, {
    id: world.uuid(),
    agentRef: agent.id,
    kind: 'sessions',
    changedKeys: [],
    description: 'Reset the sessions and tokens.',
    changedByRef: authorRefOf(caller),
    reverts: null,
    createdAt: now,
  })
  await forgetSessions(db, agent.id, now)
  return { agentId: agent.id, sessionsResetAt: toTimestamp(now) }
}
