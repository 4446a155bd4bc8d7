import { z } from 'zod'
import { inputKinds, toolModes } from '../../../shared/api/workflow-words.ts'
import { int, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { dialectOfDb, lockRows } from '../../db/dialect.ts'
import { countOf } from '../../db/reads.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** Stored programs. */

export const inputs = z.array(
  z.object({ key: z.string(), label: z.string(), kind: z.enum(inputKinds), required: z.boolean() }),
)
export type WorkflowInput = z.output<typeof inputs>[number]

const workflows = table(
  'workflows',
  {
    id: text,
    workspaceId: text,
    name: text,
    title: text,
    description: nullableText,
    inputs: json(inputs),
    toolPermissionMode: z.enum(toolModes),
    source: text,
    /** Of the program: each update adds 1. */
    version: int,
    revision: int,
    /** `agt_` id of the agent that created it; null: a person did. */
    authorAgentId: nullableText,
    /** Public id of the person (`usr_`) or agent (`agt_`) who last changed the program. */
    writtenBy: nullableText,
    /** UUID of the person who last changed the program; null: not known. */
    causedByUserId: nullableText,
    retiredAt: nullableTime,
    createdAt: time,
    updatedAt: time,
  },
  { version: 'revision' },
)
export type WorkflowRow = RowOf<typeof workflows>

export async function insertWorkflow(db: Db, workflow: Omit<WorkflowRow, 'revision'>): Promise<void> {
  await workflows.insert(db, { ...workflow, revision: 1 })
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceWorkflow(db: Db, before: WorkflowRow, after: WorkflowRow): Promise<void> {
  await workflows.replace(db, before, after)
}

export async function findWorkflow(db: Db, workspaceId: string, name: string): Promise<WorkflowRow | null> {
  return workflows.find(db, { workspaceId, name })
}

/** The same, locked until the transaction ends. */
export async function lockWorkflow(db: Db, workspaceId: string, name: string): Promise<WorkflowRow | null> {
  return workflows.first(lockRows(workflows.from(db).where({ workspace_id: workspaceId, name })))
}

/** Those that can be started. */
export async function countWorkflows(db: Db, workspaceId: string): Promise<number> {
  return countOf(db('workflows').where({ workspace_id: workspaceId }).whereNull('retired_at'))
}

/** By their characters, as built-in ones are put between them: PostgreSQL sorts by the language of the database otherwise. */
const nameIn = (db: Db): string => (dialectOfDb(db) === 'postgres' ? 'name collate "C"' : 'name')

/** All of the workspace, by name. */
export async function listWorkflows(
  db: Db,
  { workspaceId, afterName, limit }: { workspaceId: string; afterName?: string; limit: number },
): Promise<WorkflowRow[]> {
  const query = workflows.from(db).where({ workspace_id: workspaceId })
  if (afterName !== undefined) void query.whereRaw(`${nameIn(db)} > ?`, [afterName])
  return workflows.list(query.orderByRaw(nameIn(db)).limit(limit + 1))
}
