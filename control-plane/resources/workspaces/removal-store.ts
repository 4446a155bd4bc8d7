import type { Db } from '../../db/open.ts'

/** The tables of everything that belongs to a workspace, for its removal. */

type Owner =
  | 'search_pages'
  | 'files'
  | 'wiki_pages'
  | 'learnings'
  | 'workflow_runs'
  | 'runs'
  | 'agents'
  | 'projects'
  | 'tasks'
  | 'conversations'

interface OwnedTable {
  table: string
  /** The column that names the workspace, or the row of `owner` that does. */
  column: string
  owner?: Owner
}

/**
 * Rows that refer to others come before them. A test fails until each table of a new migration is here or among those
 * that stay.
 */
export const ownedTables: readonly OwnedTable[] = [
  { table: 'search_index', column: 'rowid', owner: 'search_pages' },
  { table: 'search_pages', column: 'workspace_id' },
  { table: 'search_chunks', column: 'workspace_id' },
  { table: 'search_vectors', column: 'workspace_id' },
  { table: 'file_relations', column: 'file_id', owner: 'files' },
  { table: 'file_revisions', column: 'file_id', owner: 'files' },
  { table: 'files', column: 'workspace_id' },
  { table: 'wiki_sources', column: 'workspace_id' },
  { table: 'wiki_links', column: 'page_id', owner: 'wiki_pages' },
  { table: 'wiki_relations', column: 'from_page_id', owner: 'wiki_pages' },
  { table: 'wiki_revisions', column: 'page_id', owner: 'wiki_pages' },
  { table: 'wiki_pages', column: 'workspace_id' },
  { table: 'learning_entities', column: 'learning_id', owner: 'learnings' },
  { table: 'learnings', column: 'workspace_id' },
  { table: 'run_frames', column: 'run_id', owner: 'runs' },
  { table: 'run_evidence', column: 'run_id', owner: 'runs' },
  { table: 'run_change_sets', column: 'run_id', owner: 'runs' },
  { table: 'run_details', column: 'run_id', owner: 'runs' },
  { table: 'wake_keys', column: 'agent_id', owner: 'agents' },
  { table: 'agent_history', column: 'agent_id', owner: 'agents' },
  { table: 'agent_revisions', column: 'agent_id', owner: 'agents' },
  { table: 'project_grants', column: 'project_id', owner: 'projects' },
  { table: 'message_edits', column: 'conversation_id', owner: 'conversations' },
  { table: 'messages', column: 'conversation_id', owner: 'conversations' },
  { table: 'conversation_reads', column: 'conversation_id', owner: 'conversations' },
  { table: 'conversation_participants', column: 'conversation_id', owner: 'conversations' },
  { table: 'conversations', column: 'workspace_id' },
  { table: 'task_checklist_items', column: 'task_id', owner: 'tasks' },
  { table: 'task_dependencies', column: 'task_id', owner: 'tasks' },
  { table: 'task_watchers', column: 'task_id', owner: 'tasks' },
  { table: 'task_activity', column: 'task_id', owner: 'tasks' },
  { table: 'task_reads', column: 'task_id', owner: 'tasks' },
  { table: 'tasks', column: 'workspace_id' },
  { table: 'repos', column: 'workspace_id' },
  { table: 'wakes', column: 'workspace_id' },
  { table: 'approvals', column: 'workspace_id' },
  { table: 'questions', column: 'workspace_id' },
  { table: 'repo_bindings', column: 'workspace_id' },
  { table: 'quota_windows', column: 'workspace_id' },
  { table: 'provider_circuits', column: 'workspace_id' },
  { table: 'secret_grants', column: 'workspace_id' },
  { table: 'secrets', column: 'workspace_id' },
  { table: 'workflow_calls', column: 'workflow_run_id', owner: 'workflow_runs' },
  { table: 'workflow_runs', column: 'workspace_id' },
  { table: 'workflow_programs', column: 'workspace_id' },
  { table: 'workflows', column: 'workspace_id' },
  { table: 'automation_fires', column: 'workspace_id' },
  { table: 'automations', column: 'workspace_id' },
  { table: 'platform_changes', column: 'workspace_id' },
  { table: 'runs', column: 'workspace_id' },
  { table: 'projects', column: 'workspace_id' },
  { table: 'folders', column: 'workspace_id' },
  { table: 'devices', column: 'workspace_id' },
  { table: 'agents', column: 'workspace_id' },
  { table: 'login_tokens', column: 'workspace_id' },
  { table: 'device_grants', column: 'workspace_id' },
  { table: 'sign_in_links', column: 'workspace_id' },
  { table: 'members', column: 'workspace_id' },
  { table: 'workspaces', column: 'id' },
]

/** Removes the workspace and everything in it; its slugs stay reserved. */
export async function removeWorkspaceRows(db: Db, workspaceId: string): Promise<void> {
  for (const { table, column, owner } of ownedTables) {
    const rows = db(table)
    if (owner === undefined) void rows.where({ [column]: workspaceId })
    else
      void rows.whereIn(column, (owners) => void owners.from(owner).select('id').where({ workspace_id: workspaceId }))
    await rows.delete()
  }
}
