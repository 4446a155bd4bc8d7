import { hasPrefix, type AgentRef } from '../../../shared/lib/ids.ts'
import type { Tx } from '../../db/open.ts'
import { isAgentVisible } from '../../resources/agents/rules.ts'
import { findAgent, listAgentsByReferences, matchReference, type AgentRow } from '../../resources/agents/store.ts'
import { findTaskById, type TaskRow } from '../../resources/tasks/store.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import { callArgs } from '../engine/args.ts'
import { isStep, type ProgramCall } from '../engine/words.ts'

/** The task that a step is about, and the agent that does it. */
export interface Subject {
  task: TaskRow | null
  /** The agent that does the step; null: there is none that may do it. */
  agent: AgentRow | null
  /** The agent that the program names. */
  named: string | null
}

type Call = Pick<ProgramCall, 'kind' | 'args'>

/** Returns the id of the agent that does a step; null where only a read can tell, and for a call that is no step. */
export function agentIdOf({ agentRef }: WorkflowRunRow, { kind, args }: Call): AgentRef | null {
  if (!isStep(kind)) return null
  const { agent: named } = callArgs[kind].parse(JSON.parse(args))
  if (named == null || named === 'me') return agentRef
  return hasPrefix(named, 'agt_') ? named : null
}

/** Finds the task and the agent of a call; null: the call is no step. `known`: an agent that was read in this transaction. */
export async function subjectOf(
  tx: Tx,
  run: WorkflowRunRow,
  { kind, args, known = null }: Call & { known?: AgentRow | null },
): Promise<Subject | null> {
  if (!isStep(kind)) return null
  const { task: on, agent: named = null } = callArgs[kind].parse(JSON.parse(args))
  const task = on === null || run.taskId === null ? null : await findTaskById(tx, run.taskId)
  const find = async (id: AgentRef) => (id === known?.id ? known : findAgent(tx, id))
  return { task, agent: await agentFor(tx, run, { named, task, find }), named }
}

export const noAgent = (named: string | null) =>
  named === null
    ? { code: 'no_agent', message: 'No agent is there for this step: name one, or start the workflow with a task.' }
    : { code: 'agent_not_found', message: `There is no agent ${named} that this workflow can see.` }

/** The one that is named, else that of the workflow run, else the one to which the task is assigned. */
async function agentFor(
  tx: Tx,
  run: WorkflowRunRow,
  {
    named,
    task,
    find,
  }: { named: string | null; task: TaskRow | null; find: (id: AgentRef) => Promise<AgentRow | null> },
): Promise<AgentRow | null> {
  const own = run.agentRef ?? task?.assigneeAgentRef ?? null
  if (named === null || named === 'me') return own === null ? null : find(own)
  // An agent that is named by its id is the only one to be read.
  const exact = hasPrefix(named, 'agt_') ? await find(named) : null
  if (exact?.workspaceId === run.workspaceId) return sees(run, exact) ? exact : null
  const known = (await listAgentsByReferences(tx, run.workspaceId, [named])).filter((agent) => sees(run, agent))
  const found = matchReference(known, named)
  return found === null ? null : findAgent(tx, found.id)
}

/** Private agents are those of the person behind it, the one that started it, and its own. */
function sees(
  { agentRef, startedByRef, causedByUuid: personUuid }: WorkflowRunRow,
  agent: Pick<AgentRow, 'id' | 'visibility' | 'ownerUuid'>,
): boolean {
  const starter = startedByRef?.startsWith('agt_') === true ? startedByRef : null
  return (
    agent.id === agentRef ||
    agent.id === starter ||
    isAgentVisible(agent, { seesAll: false, personUuid, agentRef: null })
  )
}
