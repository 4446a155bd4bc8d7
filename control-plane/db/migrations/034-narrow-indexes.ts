import type { Migration } from './migration.ts'

/**
 * Gives each filter of a list an index in the order of its pages, and what is open or live one that holds nothing else.
 *
 * An index of a column that most rows leave empty holds only those that do not: measured with all of them it looks as if each value
 * had thousands of rows, and SQLite would rather walk the table.
 */
export const narrowIndexes: Migration = {
  version: 34,
  name: 'narrow-indexes',
  async up(tx) {
    // Earlier ones were found by their runs.
    await tx.raw(`update approvals set conversation_id = (select conversation_id from runs where runs.id = approvals.run_id)
      where conversation_id is null and run_id is not null`)
    for (const index of replaced) await tx.raw(`drop index ${index}`)
    for (const index of added) await tx.raw(`create index ${index}`)
  },
}

/** Indexes that are replaced by those below of the same columns. */
const replaced = [
  'runs_of_task',
  'runs_of_conversation',
  'tasks_parent_task_id_index',
  'tasks_workspace_id_branch_name_index',
  'approvals_run_id_index',
  'approvals_task_id_index',
  'approvals_status_trigger_created_at_index',
  'questions_task_id_index',
  'questions_message_id_index',
  'automation_fires_run_id_index',
  'automation_fires_workflow_run_id_index',
  'workflow_runs_workspace_id_workflow_created_at_index',
  'learnings_conversation_id_created_at_id_index',
]

const added = [
  'runs_of_task on runs (task_id, created_at, id) where task_id is not null',
  'runs_of_conversation on runs (conversation_id, created_at, id) where conversation_id is not null',
  'runs_of_trigger on runs (workspace_id, trigger_source, created_at, id)',
  // A task may have had thousands of runs when the next one waits for its lock.
  'runs_live_task on runs (task_id, created_at, id) where ended_at is null and task_id is not null',
  'tasks_of_parent on tasks (parent_task_id, created_at, id) where parent_task_id is not null',
  'tasks_of_project on tasks (project_id, created_at, id) where project_id is not null',
  'tasks_of_priority on tasks (workspace_id, priority, created_at, id)',
  'tasks_of_branch on tasks (workspace_id, branch_name) where branch_name is not null',
  `tasks_open on tasks (workspace_id, project_id, parent_task_id, created_at, id)
     where status not in ('done', 'cancelled') and archived_at is null`,
  'task_activity_of_task on task_activity (task_id, seq)',
  'wakes_taken on wakes (taken_at) where taken_at is not null',
  'approvals_of_run on approvals (run_id, created_at, id) where run_id is not null',
  'approvals_of_task on approvals (task_id, created_at, id) where task_id is not null',
  'approvals_of_conversation on approvals (conversation_id, created_at, id) where conversation_id is not null',
  'approvals_of_assignee on approvals (assigned_id, created_at, id) where assigned_id is not null',
  'approvals_of_trigger on approvals (workspace_id, "trigger", created_at, id)',
  `approvals_open on approvals (workspace_id, created_at, id) where status = 'open'`,
  // SQLite chooses by the columns of an index, and does not reckon with how few rows it holds.
  `approvals_open_of_trigger on approvals (workspace_id, "trigger", created_at, id) where status = 'open'`,
  `approvals_open_trigger on approvals ("trigger", created_at, id) where status = 'open'`,
  `approvals_open_task on approvals (task_id) where status = 'open' and task_id is not null`,
  'questions_of_task on questions (task_id, created_at, id) where task_id is not null',
  'questions_of_conversation on questions (conversation_id, created_at, id) where conversation_id is not null',
  'questions_of_session on questions (session_id, created_at, id)',
  'questions_of_agent on questions (agent_id, created_at, id)',
  'questions_of_message on questions (message_id) where message_id is not null',
  `questions_open on questions (workspace_id, created_at, id) where status = 'open'`,
  `questions_open_agent on questions (agent_id) where status = 'open'`,
  `questions_open_task on questions (task_id) where status = 'open' and task_id is not null`,
  'automation_fires_of_run on automation_fires (run_id) where run_id is not null',
  'automation_fires_of_workflow_run on automation_fires (workflow_run_id) where workflow_run_id is not null',
  'workflow_runs_live on workflow_runs (workspace_id, created_at) where completed_at is null',
  'workflow_runs_of_status on workflow_runs (workspace_id, status, created_at, id)',
  'workflow_runs_of_workflow on workflow_runs (workspace_id, workflow, created_at, id)',
  'wiki_pages_unpublished on wiki_pages (workspace_id, created_at, id) where current_revision_id is null',
  'learnings_of_conversation on learnings (conversation_id, created_at, id) where conversation_id is not null',
]
