import {
  hasPrefix,
  type ActorRef,
  type PersonUuid,
  type TaskId,
  type WorkflowId,
  type WorkspaceUuid,
} from '../../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import type { ToolMode } from '../../../../shared/api/workflow-words.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import type { BuiltIn } from '../../../workflows/catalog/catalog.ts'
import { publishChange } from '../notify.ts'
import { causeOfRun } from '../rules.ts'
import { insertProgram, insertWorkflowRun, type WorkflowRunRow } from '../run-store.ts'
import type { WorkflowRow } from '../store.ts'

/** A program that is started: a stored one, or with `id` null one that comes with the server. */
export type StartedProgram = Pick<
  WorkflowRow,
  | 'workspaceId'
  | 'name'
  | 'inputs'
  | 'source'
  | 'toolPermissionMode'
  | 'authorAgentRef'
  | 'writtenByRef'
  | 'causedByUuid'
  | 'retiredAt'
> & { id: WorkflowId | null }

export const programOf = (
  { meta, source }: Pick<BuiltIn, 'meta' | 'source'>,
  workspaceId: WorkspaceUuid,
): StartedProgram => ({
  id: null,
  workspaceId,
  name: meta.name,
  inputs: meta.inputs,
  toolPermissionMode: meta.toolPermissionMode,
  source,
  authorAgentRef: null,
  writtenByRef: null,
  causedByUuid: null,
  retiredAt: null,
})

/** A start, whoever asks for it; what it names has been looked up. */
export interface Begin {
  workflow: StartedProgram
  input: Record<string, unknown>
  taskId: TaskId | null
  /** null: the workflow's own. */
  toolPermissionMode: ToolMode | null
  /** Public id of the person (`usr_`) or agent (`agt_`) who starts it. An agent does the steps of a person's workflow. */
  startedByRef: ActorRef
  /** UUID of the person who starts it. */
  causedByUuid: PersonUuid | null
}

/** Writes a workflow run, in the caller's transaction: its program runs once that is committed. */
export async function beginWorkflowRun(db: Db, begin: Begin, world: World): Promise<WorkflowRunRow> {
  const { workflow, input, taskId, startedByRef } = begin
  const { workspaceId, source } = workflow
  const now = world.now()
  const programDigest = createHash('sha256').update(source).digest('base64url')
  const run: WorkflowRunRow = {
    id: world.id('flr_'),
    workspaceId,
    workflow: workflow.name,
    workflowId: workflow.id,
    programDigest,
    input,
    toolPermissionMode: begin.toolPermissionMode ?? workflow.toolPermissionMode,
    status: 'running',
    summary: null,
    error: null,
    log: [],
    taskId,
    agentRef: workflow.authorAgentRef ?? (hasPrefix(startedByRef, 'agt_') ? startedByRef : null),
    startedByRef,
    writtenByRef: workflow.writtenByRef,
    causedByUuid: causeOfRun(begin.causedByUuid, workflow.causedByUuid, workflow.id === null),
    replayedAt: null,
    retriedAt: null,
    stall: null,
    journalBytes: 0,
    cancelRequestedAt: null,
    version: 1,
    createdAt: now,
    changedAt: now,
    completedAt: null,
  }
  await insertProgram(db, { workspaceId, digest: programDigest, source })
  await insertWorkflowRun(db, run)
  await publishChange(db, run, now)
  return run
}
