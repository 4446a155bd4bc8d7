import { fail } from '../../../shared/api/errors.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { isAgentVisible, viewerOfAgents } from '../agents/rules.ts'
import { findAgentIdentity, type AgentIdentity } from '../agents/identity-store.ts'
import { seesWork } from '../projects/work-visibility.ts'
import { findRunInWorkspace, type RunRow } from './store.ts'

/** The run a reference names in the caller's workspace, seen or not, with its agent. */
export async function lookUpRun(
  db: Db,
  caller: Caller,
  reference: string,
): Promise<{ run: RunRow; agent: AgentIdentity | null; isVisible: boolean } | null> {
  const id = reference === 'current' ? (caller.kind === 'agent' ? caller.runId : null) : reference
  const run = id === null ? null : await findRunInWorkspace(db, caller.workspaceId, id)
  if (run === null) return null
  const agent = await findAgentIdentity(db, run.agentRef)
  return { run, agent, isVisible: await isRunVisible(db, caller, { run, agent }) }
}

async function isRunVisible(
  db: Db,
  caller: Caller,
  { run, agent }: { run: RunRow; agent: AgentIdentity | null },
): Promise<boolean> {
  if (caller.kind === 'agent' && caller.agentRef === run.agentRef) return true
  // A run that is about nothing but its agent needs no look at other tables.
  if (run.taskId === null && run.conversationId === null)
    return agent === null || isAgentVisible(agent, viewerOfAgents(caller))
  return seesWork(db, caller, { table: 'runs', id: run.id })
}

/** A run is seen by who sees its agent, and the task or dm that it works on. */
export async function readableRun(db: Db, caller: Caller, reference: string): Promise<RunRow> {
  return (await readableRunAndAgent(db, caller, reference)).run
}

export async function readableRunAndAgent(
  db: Db,
  caller: Caller,
  reference: string,
): Promise<{ run: RunRow; agent: AgentIdentity | null }> {
  const found = await lookUpRun(db, caller, reference)
  return found?.isVisible ? found : unknownRun(reference)
}

export function unknownRun(reference: string): never {
  const message =
    reference === 'current' ? '`current` names a run only within that run.' : 'There is no such run that you can see.'
  return fail('resource_not_found', { param: 'runId', message })
}
