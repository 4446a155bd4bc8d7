import { hasPrefix, type AgentRef } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { Caller } from '../../http/callers.ts'
import type { Db } from '../../db/open.ts'
import { findAgentIdentity, listAgentIdentities } from './identity-store.ts'
import { isAgentVisible, viewerOfAgents } from './rules.ts'
import { findAgent, listAgentsByReferences, matchReference, type AgentRow, type ListedAgent } from './store.ts'

/** The agent that a reference names for this caller, deleted or not; null when there is nothing the caller may see. */
export async function lookUpAgent(db: Db, caller: Caller, reference: string): Promise<AgentRow | null> {
  // An agent that is named by its id needs no other read.
  const id = reference === 'me' && caller.kind === 'agent' ? caller.agentRef : reference
  const named = hasPrefix(id, 'agt_') ? await findAgent(db, id) : null
  if (named?.workspaceId === caller.workspaceId) return isAgentVisible(named, viewerOfAgents(caller)) ? named : null
  const [found] = await lookUpAgents(db, caller, [reference])
  return found ? findAgent(db, found.id) : null
}

/** Returns whether the caller sees an agent; an agent that is gone is seen by all. */
export async function seesAgent(db: Db, caller: Caller, agentRef: AgentRef | null): Promise<boolean> {
  const agent = agentRef === null ? null : await findAgentIdentity(db, agentRef)
  return agent === null || isAgentVisible(agent, viewerOfAgents(caller))
}

/** Returns those of the agents that the caller does not see. One that is gone is seen by all. */
export async function listHiddenAgents(db: Db, caller: Caller, ids: readonly AgentRef[]): Promise<Set<AgentRef>> {
  const known = await listAgentIdentities(db, [...new Set(ids)])
  const viewer = viewerOfAgents(caller)
  return new Set(known.filter((agent) => !isAgentVisible(agent, viewer)).map(({ id }) => id))
}

/** Returns one slot for each reference, in their order. */
export async function lookUpAgents(
  db: Db,
  caller: Caller,
  references: readonly string[],
): Promise<(ListedAgent | null)[]> {
  const own = caller.kind === 'agent' ? caller.agentRef : null
  const asked = references.map((reference) => (reference === 'me' ? own : reference))
  const known = await listAgentsByReferences(
    db,
    caller.workspaceId,
    asked.filter((reference) => reference !== null),
  )
  // An agent that the caller may not see must not win over a visible one of the same name.
  const visible = known.filter((agent) => isAgentVisible(agent, viewerOfAgents(caller)))
  return asked.map((reference) => (reference === null ? null : matchReference(visible, reference)))
}

/** The agent to read: people also read deleted ones. */
export async function readableAgent(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  if (agent === null || (agent.deletedAt !== null && caller.kind === 'agent')) return unknownAgent(reference)
  return agent
}

/** The agent to change: a deleted one must be restored first. */
export async function changeableAgent(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  return agent === null || agent.deletedAt !== null ? unknownAgent(reference) : agent
}

/** The agent whose settings are read: an agent reads only its own. */
export async function readableOwn(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  return ownOnly(await readableAgent(db, caller, reference), caller)
}

/** The agent whose settings are written: an agent writes only its own. */
export async function changeableOwn(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  return ownOnly(await changeableAgent(db, caller, reference), caller)
}

function ownOnly(agent: AgentRow, caller: Caller): AgentRow {
  const isOther = caller.kind === 'agent' && caller.agentRef !== agent.id
  return isOther ? fail('agent_self_only', { param: 'agentId' }) : agent
}

export function unknownAgent(reference: string): never {
  const message =
    reference === 'me' ? '`me` names the calling agent; a person is none.' : 'There is no such agent that you can see.'
  return fail('resource_not_found', { param: 'agentId', message })
}
