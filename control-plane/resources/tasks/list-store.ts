import type { AgentRef, ProjectUuid, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { countOf, cellOf } from '../../db/reads.ts'
import type { Knex } from 'knex'
import { nullableText, text } from '../../db/columns.ts'
import { taskId } from '../../db/id-columns.ts'
import { pageById, type IdPage } from '../../db/id-page.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { onlyVisibleProjects, type ProjectViewer } from '../projects/visibility.ts'
import { mostLevels } from './rules.ts'
import { tasks, type TaskRow } from './store.ts'

export interface TaskFilter extends IdPage {
  workspaceId: WorkspaceUuid
  /** Left out: all. */
  statuses?: readonly string[]
  priorities?: readonly string[]
  /** `agt_` id; null: those of nobody. */
  assigneeAgentRef?: AgentRef | null
  /** UUID; null: those of no project. */
  projectId?: ProjectUuid | null
  /** `tsk_` id; null: root tasks. */
  parentTaskId?: TaskId | null
  withArchived?: boolean
  /** Matched case-insensitively against title, key and description. */
  q?: string
  /** null sees all. */
  visibleTo?: ProjectViewer
}

/** Newest first, from the cursor upwards when it pages back; one row more than `limit`. */
export async function listTasks(db: Db, filter: TaskFilter): Promise<TaskRow[]> {
  const query = tasks.from(db).where({ workspace_id: filter.workspaceId })
  if (filter.withArchived !== true) void query.whereNull('archived_at')
  if (filter.statuses) void query.whereIn('status', [...filter.statuses])
  if (filter.priorities) void query.whereIn('priority', [...filter.priorities])
  if (filter.assigneeAgentRef !== undefined) void query.where({ assignee_agent_id: filter.assigneeAgentRef })
  if (filter.projectId !== undefined) void query.where({ project_id: filter.projectId })
  if (filter.parentTaskId !== undefined) void query.where({ parent_task_id: filter.parentTaskId })
  onlyContaining(query, ['title', 'key', 'description'], filter.q)
  if (filter.visibleTo) onlyVisible(query, filter.visibleTo)
  return tasks.list(pageById(query, filter))
}

/** Tasks that this viewer sees and that are not archived. */
export async function countTasks(db: Db, workspaceId: WorkspaceUuid, viewer: ProjectViewer): Promise<number> {
  const query = db('tasks').where({ workspace_id: workspaceId }).whereNull('archived_at')
  if (viewer) onlyVisible(query, viewer)
  return countOf(query)
}

/** Tasks of no project or of one the viewer sees; an agent sees its own tasks wherever they are. */
function onlyVisible(query: Knex.QueryBuilder, viewer: NonNullable<ProjectViewer>): void {
  void query.where((any) => {
    void any.whereNull('project_id').orWhereIn('project_id', (projects) => {
      onlyVisibleProjects(projects.from('projects').select('id'), viewer)
    })
    if ('agentRef' in viewer) void any.orWhere({ assignee_agent_id: viewer.agentRef })
  })
}

/** Open tasks are compared by their titles first; this many of the newest. */
const mostCompared = 2_000

const candidates = table('tasks', { id: taskId, titleWords: text })

/** Unfinished tasks of the same project and parent, with the words of their titles. */
export async function listDuplicateCandidates(
  db: Db,
  of: { workspaceId: WorkspaceUuid; projectId: ProjectUuid | null; parentTaskId: TaskId | null },
): Promise<RowOf<typeof candidates>[]> {
  const query = candidates
    .from(db)
    .where({ workspace_id: of.workspaceId, project_id: of.projectId, parent_task_id: of.parentTaskId })
    // The condition is that of the index of open tasks.
    .whereRaw("status not in ('done', 'cancelled')")
    .whereNull('archived_at')
    .orderByRaw('created_at desc, id desc')
    .limit(mostCompared)
  return candidates.list(query)
}

/** The tasks above this one, its parent first. */
export async function listAncestors(db: Db, taskId: TaskId): Promise<string[]> {
  const chain: string[] = []
  let at: string | null = taskId
  // Trees are four levels deep; the bound only guards against a loop that should not be.
  while (at !== null && chain.length < 16) {
    at = await cellOf(db('tasks').where({ id: at }), 'parent_task_id', nullableText)
    if (at !== null) chain.push(at)
  }
  return chain
}

/** The number of levels that a task and its subtasks take: 1 without subtasks. Those beyond the deepest that may be are not counted. */
export async function countLevels(db: Db, taskId: TaskId): Promise<number> {
  let levels = 1
  while (levels <= mostLevels && (await hasLevelBelow(db, taskId, levels))) levels++
  return levels
}

/** `depth`: 1 looks for subtasks, 2 for theirs. It ends at the first one that it finds. */
async function hasLevelBelow(db: Db, taskId: TaskId, depth: number): Promise<boolean> {
  const query = db('tasks as level1').where('level1.parent_task_id', taskId)
  for (let at = 2; at <= depth; at++)
    void query.join(`tasks as level${at}`, `level${at}.parent_task_id`, `level${at - 1}.id`)
  return (await query.first(`level${depth}.id`)) !== undefined
}
