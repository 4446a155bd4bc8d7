import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { inputKinds, toolModes } from '../../../shared/api/workflow-words.ts'
import { int, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { actorRef, agentRef, personUuid, workflowId, workspaceUuid } from '../../db/id-columns.ts'
import { byCharacters, lockRows } from '../../db/dialect.ts'
import { countOf } from '../../db/reads.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

// Stored programs.

export const inputs = z.array(
  z.object({ key: z.string(), label: z.string(), kind: z.enum(inputKinds), required: z.boolean() }),
)
export type WorkflowInput = z.output<typeof inputs>[number]

const workflows = table(
  'workflows',
  {
    id: workflowId,
    workspaceId: workspaceUuid,
    name: text,
    title: text,
    description: nullableText,
    inputs: json(inputs),
    toolPermissionMode: z.enum(toolModes),
    source: text,
    /** The version of the program: each update adds 1. */
    version: int,
    revision: int,
    /** `agt_` id of the agent that created it; null: a person did. */
    authorAgentRef: agentRef.nullable(),
    /** Public id of the person (`usr_`) or agent (`agt_`) who last changed the program. */
    writtenByRef: actorRef.nullable(),
    /** UUID of the person who last changed the program; null: not known. */
    causedByUuid: personUuid.nullable(),
    retiredAt: nullableTime,
    createdAt: time,
    updatedAt: time,
  },
  {
    columns: { authorAgentRef: 'author_agent_id', writtenByRef: 'written_by', causedByUuid: 'caused_by_user_id' },
    version: 'revision',
  },
)
export type WorkflowRow = RowOf<typeof workflows>

export async function insertWorkflow(db: Db, workflow: Omit<WorkflowRow, 'revision'>): Promise<void> {
  await workflows.insert(db, { ...workflow, revision: 1 })
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceWorkflow(db: Db, before: WorkflowRow, after: WorkflowRow): Promise<void> {
  await workflows.replace(db, before, after)
}

export async function findWorkflow(db: Db, workspaceId: WorkspaceUuid, name: string): Promise<WorkflowRow | null> {
  return workflows.find(db, { workspaceId, name })
}

/** Finds a workflow and locks it until the transaction ends. */
export async function lockWorkflow(db: Db, workspaceId: WorkspaceUuid, name: string): Promise<WorkflowRow | null> {
  return workflows.first(lockRows(workflows.from(db).where({ workspace_id: workspaceId, name })))
}

/** Counts the workflows that can be started, with `withRetired` the others, too. */
export async function countWorkflows(
  db: Db,
  workspaceId: WorkspaceUuid,
  { withRetired = false }: { withRetired?: boolean } = {},
): Promise<number> {
  const query = db('workflows').where({ workspace_id: workspaceId })
  return countOf(withRetired ? query : query.whereNull('retired_at'))
}

/** Lists the workflows of the workspace by name; built-in ones are put between them. */
export async function listWorkflows(
  db: Db,
  { workspaceId, afterName, limit }: { workspaceId: WorkspaceUuid; afterName?: string; limit: number },
): Promise<WorkflowRow[]> {
  const query = workflows.from(db).where({ workspace_id: workspaceId })
  const name = byCharacters(db, 'name')
  if (afterName !== undefined) void query.whereRaw(`${name} > ?`, [afterName])
  return workflows.list(query.orderByRaw(name).limit(limit + 1))
}
