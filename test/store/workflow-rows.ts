import { idFrom, type AgentRef, type WorkflowRunId } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { insertCall } from '../../control-plane/resources/workflows/call-store.ts'
import { insertWorkflowRun, type WorkflowRunRow } from '../../control-plane/resources/workflows/run-store.ts'
import type { WorkflowRow } from '../../control-plane/resources/workflows/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

// Rows of workflows for store tests.

export function workflowRow(workspaceId: string, changes: Partial<WorkflowRow> = {}): WorkflowRow {
  return {
    id: realWorld.id('flw_'),
    workspaceId: idFrom(workspaceId),
    name: 'review',
    title: 'Review',
    description: null,
    inputs: [{ key: 'n', label: 'N', kind: 'number', required: true }],
    toolPermissionMode: 'ask',
    source: 'return 1',
    version: 1,
    revision: 1,
    authorAgentRef: null,
    writtenByRef: null,
    causedByUuid: null,
    retiredAt: null,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
}

export async function seedFlow(
  db: Db,
  workspaceId: string,
  changes: Partial<WorkflowRunRow> = {},
): Promise<WorkflowRunRow> {
  const row: WorkflowRunRow = {
    id: realWorld.id('flr_'),
    workspaceId: idFrom(workspaceId),
    workflow: 'review',
    workflowId: null,
    programDigest: 'd',
    input: { n: 1 },
    toolPermissionMode: 'full',
    status: 'running',
    summary: null,
    error: null,
    log: ['one'],
    taskId: null,
    agentRef: null,
    startedByRef: null,
    writtenByRef: null,
    causedByUuid: null,
    replayedAt: null,
    retriedAt: null,
    stall: null,
    journalBytes: 0,
    cancelRequestedAt: null,
    version: 1,
    createdAt: at,
    changedAt: at,
    completedAt: null,
    ...changes,
  }
  await insertWorkflowRun(db, row)
  return row
}

export async function seedCall(
  db: Db,
  workflowRunId: WorkflowRunId,
  seq: number,
  agentId: string | null = null,
): Promise<void> {
  const call = { workflowRunId, seq, stepOrdinal: seq, kind: 'agent', args: '{}', digest: `d${seq}` } as const
  await insertCall(db, { ...call, agentRef: idFrom<AgentRef>(agentId), dispatchedAt: at + seq })
}
