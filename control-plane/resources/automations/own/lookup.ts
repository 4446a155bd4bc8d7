import type { AgentRef, AutomationId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { isAgentVisible, viewerOfAgents } from '../../agents/rules.ts'
import { findAgent } from '../../agents/store.ts'
import { findAutomation, lockAutomation, type AutomationRow } from '../store.ts'

/** The automation, if the caller sees its agent. Fails with `automation_not_found`. */
export async function readableAutomation(db: Db, caller: Caller, id: AutomationId): Promise<AutomationRow> {
  const automation = await findAutomation(db, caller.workspaceId, id)
  if (automation === null) return unknownAutomation()
  const agent = await findAgent(db, automation.agentRef)
  return agent !== null && isAgentVisible(agent, viewerOfAgents(caller)) ? automation : unknownAutomation()
}

/** The automation to change or fire, locked until the transaction ends. */
export async function lockedAutomation(db: Db, caller: Caller, id: AutomationId): Promise<AutomationRow> {
  await readableAutomation(db, caller, id)
  return (await lockAutomation(db, id)) ?? unknownAutomation()
}

/** Id of the agent that an automation should wake. Fails with `agent_not_found`. */
export async function agentToWake(db: Db, caller: Caller, reference: string): Promise<AgentRef> {
  const agent = await lookUpAgent(db, caller, reference)
  return agent === null || agent.deletedAt !== null ? fail('agent_not_found', { param: 'agentId' }) : agent.id
}

function unknownAutomation(): never {
  return fail('automation_not_found', { param: 'automationId' })
}
