import { fail } from '../../../shared/api/errors.ts'
import type { Caller } from '../../http/callers.ts'
import type { Db } from '../../db/open.ts'
import { isVisible, viewerOf } from './rules.ts'
import { listAgentsByReferences, matchReference, type AgentRow } from './store.ts'

/** What a reference names for this caller, deleted or not; null when there is nothing the caller may see. */
export async function lookUpAgent(db: Db, caller: Caller, reference: string): Promise<AgentRow | null> {
  return (await lookUpAgents(db, caller, [reference]))[0] ?? null
}

/** One slot for each reference, in their order. */
export async function lookUpAgents(
  db: Db,
  caller: Caller,
  references: readonly string[],
): Promise<(AgentRow | null)[]> {
  const own = caller.kind === 'agent' ? caller.agentId : null
  const asked = references.map((reference) => (reference === 'me' ? own : reference))
  const known = await listAgentsByReferences(
    db,
    caller.workspaceId,
    asked.filter((reference) => reference !== null),
  )
  // What the caller may not see must not stand before what it may see under the same name.
  const visible = known.filter((agent) => isVisible(agent, viewerOf(caller)))
  return asked.map((reference) => (reference === null ? null : matchReference(visible, reference)))
}

/** The agent to read: people also read deleted ones (silence agents.deletedRead). */
export async function readableAgent(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  if (agent === null || (agent.deletedAt !== null && caller.kind === 'agent')) return unknownAgent(reference)
  return agent
}

/** The agent to change: a deleted one is restored first. */
export async function changeableAgent(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  return agent === null || agent.deletedAt !== null ? unknownAgent(reference) : agent
}

/** An agent reads and writes settings of its own only. */
export function ownAgentOnly(agent: AgentRow, caller: Caller): void {
  if (caller.kind === 'agent' && caller.agentId !== agent.id) fail('agent_self_only', { param: 'agentId' })
}

export function unknownAgent(reference: string): never {
  const message =
    reference === 'me' ? '`me` names the calling agent; a person is none.' : 'There is no such agent that you can see.'
  return fail('resource_not_found', { param: 'agentId', message })
}
