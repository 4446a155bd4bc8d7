import type { AgentRef } from '../../../shared/lib/ids.ts'
import type { Tx } from '../../db/open.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import type { TaskRow } from '../../resources/tasks/store.ts'
import { endCall, type CallRow } from '../../resources/workflows/call-store.ts'
import { publishChange } from '../../resources/workflows/notify.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import type { WorkspaceRow } from '../../resources/workspaces/store.ts'
import type { WakeContext } from '../../run/wakes/wake.ts'
import type { ProgramCall } from '../engine/words.ts'
import type { StepOutcome } from './outcome.ts'
import type { Subject } from './step-subject.ts'

/** A call that the program made just now, with its number, and the number of the step that it is. */
export interface NewCall extends ProgramCall {
  seq: number
  /** The number of the step; null: the call is no step. */
  stepOrdinal: number | null
  /** The reason for which the call cannot be done, if that is known already. */
  refusal: StepOutcome | null
}

export interface Surroundings {
  run: WorkflowRunRow
  workspace: WorkspaceRow
  /** The calls before it. */
  calls: readonly Pick<CallRow, 'seq' | 'kind' | 'args'>[]
  /** The task and the agent of the step; null: the call is no step. */
  subject: Subject | null
  context: WakeContext
  readsChecks: boolean
}

/** A step whose run is to be started. */
export interface StartedStep extends Omit<Surroundings, 'readsChecks' | 'subject'> {
  seq: number
  task: TaskRow | null
  agent: AgentRow
}

/** The call as the journal has it. */
export const rowOf = (
  { seq, stepOrdinal, kind, args, digest }: NewCall,
  { id: workflowRunId }: WorkflowRunRow,
  { agentRef, at: dispatchedAt }: { agentRef: AgentRef | null; at: number },
) => ({ workflowRunId, seq, stepOrdinal, kind, args, digest, agentRef, dispatchedAt })

/** The call, which is written down, has failed at once. */
export async function refuseCall(
  tx: Tx,
  run: WorkflowRunRow,
  { seq, at, refusal }: { seq: number; at: number; refusal: StepOutcome },
): Promise<void> {
  await endCall(tx, { workflowRunId: run.id, seq }, { at, isValue: false, result: refusal.text })
  await publishChange(tx, run, at)
}
