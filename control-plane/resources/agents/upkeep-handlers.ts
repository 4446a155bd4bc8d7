import { agentUpkeepRoutes } from '../../../shared/api/agent-upkeep.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import { publish } from '../../db/outbox.ts'
import type { Db } from '../../db/open.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../http/implement.ts'
import type { ResourceDependencies } from '../dependencies.ts'
import { raisePlatformChange } from '../platform-changes/raise.ts'
import { findDetails, replaceSpec } from '../runs/details-store.ts'
import { withdrawOffer } from '../runs/lease-store.ts'
import { listLiveOfAgent } from '../runs/live-store.ts'
import { auditAgent } from './doctor-facts.ts'
import { insertHistory } from './history-store.ts'
import { changeableAgent, readableAgent } from './lookup.ts'
import { publicIdOf, storeAgent, workspaceOf } from './writes.ts'

export function agentUpkeepHandlers(deps: ResourceDependencies): ImplementedRoute[] {
  return implement(agentUpkeepRoutes, {
    async audit({ db, caller, params, world }) {
      const agent = await readableAgent(db, caller, params.agentId)
      const workspace = await workspaceOf(db, caller)
      return { agentId: agent.id, audit: await auditAgent(db, { agent, workspace }, { ...deps, now: world.now() }) }
    },

    sessionsReset: (input) => resetSessions(input, deps),
  })
}

/**
 * Raises the generation of the agent's tokens, so that those of its live runs are dead, and lets no later run go on with a
 * session of now. A run that waits forgets the session it was to go on with.
 */
async function resetSessions(input: HandlerInput<typeof agentUpkeepRoutes.sessionsReset>, deps: ResourceDependencies) {
  const { db, caller, params, world, afterCommit } = input
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
    agentId: agent.id,
    kind: 'sessions',
    changedKeys: [],
    description: 'Reset the sessions and tokens.',
    changedBy: publicIdOf(caller),
    reverts: null,
    createdAt: now,
  })
  await forgetSessions(db, agent.id, now)
  afterCommit(() => deps.bus.poke())
  return { agentId: agent.id, sessionsResetAt: toTimestamp(now) }
}

async function forgetSessions(db: Db, agentId: string, now: number): Promise<void> {
  for (const run of await listLiveOfAgent(db, agentId)) {
    if (run.leaseState === 'claimed') continue
    const details = await findDetails(db, run.id)
    if (!details || details.spec.resumeSessionId === null) continue
    // The device that was offered the run knows its spec: it is taken back, and offered anew.
    if (run.leaseState === 'offered') {
      if (!(await withdrawOffer(db, run.id, run.fence))) continue
      await publish(db, { topic: 'run.queued', key: run.id, at: now })
    }
    await replaceSpec(db, run.id, { ...details.spec, resumeSessionId: null })
  }
}
