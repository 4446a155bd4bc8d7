import { z } from 'zod'
import { int, nullableInt, nullableTime, text } from '../db/columns.ts'
import { wasCancelled } from '../db/dialect.ts'
import type { Db } from '../db/open.ts'
import { query } from '../db/statement.ts'

// What takes room, counted over all workspaces by whoever operates the server. Each kind is one statement, which reads an index or the
// rows of one table, and no long value of theirs: bodies are measured where their length is written beside them.

/** What a kind is counted by, and the tables whose room is its room. */
interface CountedKind {
  kind: string
  tables: readonly string[]
  /** What follows `select`: the workspace, the number, the oldest, the bytes that are known to be in the database and outside of it. */
  counted: string
}

interface Columns {
  of?: string
  n?: string
  oldest?: string
  bytes?: string
  outside?: string
}

const counting = (
  from: string,
  { of = 'workspace_id', n = 'count(*)', oldest = 'min(created_at)', ...known }: Columns,
) =>
  `select ${of} as "workspaceId", ${n} as "rows", ${oldest} as "oldestAt", ${known.bytes ?? 'null'} as "bytes",
   ${known.outside ?? '0'} as "outsideBytes" from ${from} group by ${of}`

const plain = (table: string) => counting(table, {})
const joined = (table: string, column: string, owners: string, columns: Columns = {}) =>
  counting(`${table} as t join ${owners} as o on o.id = t.${column}`, {
    of: 'o.workspace_id',
    oldest: 'min(o.created_at)',
    ...columns,
  })

/** Each table of the database belongs to one of these, or to `other`. */
const kinds: readonly CountedKind[] = [
  {
    kind: 'runs',
    tables: ['runs', 'run_details', 'run_network', 'sandboxes', 'removed_runs', 'removed_run_logs'],
    counted: plain('runs'),
  },
  {
    kind: 'run_events',
    tables: ['run_frames', 'run_evidence'],
    // A run has the sum of its frames: they are large, and their lengths lie with them.
    counted: counting('runs', {
      n: 'sum(event_seq)',
      oldest: 'min(case when event_seq > 0 then created_at end)',
      bytes: 'sum(event_bytes)',
    }),
  },
  { kind: 'change_sets', tables: ['run_change_sets'], counted: joined('run_change_sets', 'run_id', 'runs') },
  {
    kind: 'tasks',
    tables: ['tasks', 'task_checklist_items', 'task_dependencies', 'task_watchers', 'task_reads'],
    counted: plain('tasks'),
  },
  {
    kind: 'task_history',
    tables: ['task_activity'],
    counted: joined('task_activity', 'task_id', 'tasks', { oldest: 'min(t.created_at)' }),
  },
  {
    kind: 'messages',
    tables: ['conversations', 'messages', 'message_edits', 'conversation_reads', 'conversation_participants'],
    counted: joined('messages', 'conversation_id', 'conversations'),
  },
  {
    kind: 'file_versions',
    tables: ['files', 'file_revisions', 'file_relations', 'blobs'],
    counted: joined('file_revisions', 'file_id', 'files', {
      oldest: 'min(t.created_at)',
      outside: 'coalesce(sum(case when t.blob_id is not null then t.size_bytes else 0 end), 0)',
    }),
  },
  {
    kind: 'wiki_revisions',
    tables: ['wiki_pages', 'wiki_revisions', 'wiki_links', 'wiki_relations', 'wiki_sources'],
    counted: joined('wiki_revisions', 'page_id', 'wiki_pages'),
  },
  { kind: 'learnings', tables: ['learnings', 'learning_entities'], counted: plain('learnings') },
  {
    kind: 'search',
    tables: ['search_pages', 'search_chunks', 'search_vectors', 'search_index'],
    counted: counting('search_chunks', { oldest: 'null' }),
  },
  {
    kind: 'workflow_runs',
    tables: ['workflow_runs', 'workflow_calls', 'workflow_programs', 'workflows'],
    counted: plain('workflow_runs'),
  },
  { kind: 'automation_fires', tables: ['automation_fires'], counted: plain('automation_fires') },
  {
    kind: 'webhook_deliveries',
    tables: ['webhook_deliveries', 'webhook_events'],
    counted: plain('webhook_deliveries'),
  },
  { kind: 'approvals', tables: ['approvals'], counted: plain('approvals') },
  { kind: 'questions', tables: ['questions'], counted: plain('questions') },
  { kind: 'agent_changes', tables: ['platform_changes'], counted: plain('platform_changes') },
  {
    kind: 'agent_history',
    tables: ['agents', 'agent_history', 'agent_revisions'],
    counted: joined('agent_revisions', 'agent_id', 'agents', { oldest: 'min(t.created_at)' }),
  },
  {
    kind: 'skills',
    tables: ['skills', 'skill_bundles', 'skill_overrides', 'skill_shares'],
    counted: counting('skills', { outside: 'coalesce(sum(total_bytes), 0)' }),
  },
]

export interface KindUsage {
  kind: string
  tables: readonly string[]
  /** null: the database took too long to count. */
  workspaces: readonly WorkspaceUsage[] | null
}

const counted = z.object({
  workspaceId: text,
  rows: int,
  oldestAt: nullableTime,
  /** null: it is not known without reading them. */
  bytes: nullableInt,
  outsideBytes: int,
})
export type WorkspaceUsage = z.infer<typeof counted>

/** Counts each kind by workspace, also in those whose removal is under way. */
export async function countUsage(db: Db): Promise<KindUsage[]> {
  const usage: KindUsage[] = []
  for (const { kind, tables, counted: sql } of kinds)
    usage.push({ kind, tables, workspaces: await countedOrNull(db, sql) })
  return usage
}

async function countedOrNull(db: Db, sql: string): Promise<WorkspaceUsage[] | null> {
  try {
    return await query(sql, counted, { isPrepared: false }).list(db, [])
  } catch (error) {
    if (wasCancelled(error)) return null
    throw error
  }
}

const named = z.object({ id: text, slug: text })

/** Names of all workspaces by their ids. */
export async function listSlugs(db: Db): Promise<ReadonlyMap<string, string>> {
  const rows: unknown[] = await db('workspaces').select('id', 'slug')
  return new Map(rows.map((row) => named.parse(row)).map(({ id, slug }) => [id, slug]))
}
