import { hasPrefix, type ProjectUuid } from '../../../shared/lib/ids.ts'
import { fail, failField } from '../../../shared/api/errors.ts'
import type { TaskCreate } from '../../../shared/api/task-shapes.ts'
import { projectUuidOf } from '../../../shared/lib/project-ref.ts'
import { harnesses } from '../../../shared/runs/harnesses.ts'
import type { ModelCatalog } from '../../catalog/catalog.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { lookUpAgent } from '../agents/lookup.ts'
import { findAgent, type AgentRow } from '../agents/store.ts'
import { liveProject, unknownProject } from '../projects/lookup.ts'
import { isProjectVisible, projectViewerOf } from '../projects/rules.ts'
import { findProject, hasGrant, type ProjectRow } from '../projects/store.ts'
import { findRepo } from '../repos/store.ts'
import { findRun } from '../runs/store.ts'
import { findTask, findTaskById, type TaskRow, listBriefByReferences } from './store.ts'

/**
 * Finds the task that a `tsk_` id, key or `current` (the task of the calling run) names; null when there is no such task
 * or the caller may not see it.
 */
export async function lookUpTask(db: Db, caller: Caller, reference: string): Promise<TaskRow | null> {
  const task = await named(db, caller, reference)
  return task !== null && (await isTaskVisible(db, caller, task)) ? task : null
}

async function named(db: Db, caller: Caller, reference: string): Promise<TaskRow | null> {
  if (reference !== 'current') return findTask(db, caller.workspaceId, reference)
  const run = caller.kind === 'agent' ? await findRun(db, caller.runId) : null
  return run?.taskId == null ? null : findTaskById(db, run.taskId)
}

type Seen = Pick<TaskRow, 'projectId' | 'assigneeAgentRef' | 'workspaceId'>

/** A task is seen by who sees its project; one without a project by all; and by the agent it is assigned to. */
export async function isTaskVisible(db: Db, caller: Caller, task: Seen): Promise<boolean> {
  if (caller.kind === 'agent' && task.assigneeAgentRef === caller.agentRef) return true
  if (task.projectId === null) return true
  const project = await findProject(db, task.workspaceId, task.projectId)
  if (project === null) return true
  const isGranted =
    caller.kind === 'agent' && project.visibility === 'private' && (await hasGrant(db, project.id, caller.agentRef))
  return isProjectVisible(project, projectViewerOf(caller), isGranted)
}

/** Returns the tasks that the caller may see, in their order. A project is looked up once for all of its tasks. */
export async function visibleTasks<Task extends Seen>(db: Db, caller: Caller, tasks: readonly Task[]): Promise<Task[]> {
  const ofProjects = new Map<string | null, boolean>()
  const isOwn = (task: Seen) => caller.kind === 'agent' && task.assigneeAgentRef === caller.agentRef
  for (const task of tasks)
    if (!isOwn(task) && !ofProjects.has(task.projectId))
      ofProjects.set(task.projectId, await isTaskVisible(db, caller, task))
  return tasks.filter((task) => isOwn(task) || ofProjects.get(task.projectId) === true)
}

/** The task, or `task_not_found`. */
export async function readableTask(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  return (await lookUpTask(db, caller, reference)) ?? unknownTask(reference)
}

/** Returns the task, locked until the transaction ends: what is read of it stays so. Fails with `task_not_found`. */
export async function changeableTask(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  const task = await readableTask(db, caller, reference)
  return (await findTaskById(db, task.id, true)) ?? unknownTask(reference)
}

function unknownTask(reference: string): never {
  const message = reference === 'current' ? '`current` names a task only within a run that works on one.' : undefined
  return fail('task_not_found', { param: 'id', ...(message === undefined ? {} : { message }) })
}

// The functions below resolve the references in a request and check that they may be used together. Each failure has its documented code.

/** The project of a `prj_` id or UUID that the caller sees. */
export async function projectOf(db: Db, caller: Caller, reference: string): Promise<ProjectRow> {
  const id = projectUuidOf(reference)
  return id === null ? unknownProject() : liveProject(db, caller, id)
}

/** The reference within the forms an assignee may be sent in. */
export function assigneeReference(sent: TaskCreate['assignee']): string | null {
  return sent == null ? null : typeof sent === 'string' ? sent : sent.id
}

/** The agent to assign a task of this project to. */
export async function assigneeOf(
  db: Db,
  caller: Caller,
  { reference, projectId }: { reference: string; projectId: ProjectUuid | null },
): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  if (agent === null || agent.deletedAt !== null) return fail('assignee_not_found', { param: 'assignee' })
  if (!(await seesProject(db, agent, projectId))) fail('assignee_lacks_access', { param: 'assignee' })
  return agent
}

/** The agent a task has may work on it in this project, too. */
export async function checkAssigneeAccess(
  db: Db,
  task: Pick<TaskRow, 'assigneeAgentRef' | 'projectId'>,
): Promise<void> {
  const agent = task.assigneeAgentRef === null ? null : await findAgent(db, task.assigneeAgentRef)
  if (agent !== null && !(await seesProject(db, agent, task.projectId)))
    fail('assignee_lacks_access', { param: 'projectId' })
}

/** A private project is open to agents that have a grant for it or lead it. */
export async function seesProject(db: Db, agent: AgentRow, projectId: ProjectUuid | null): Promise<boolean> {
  const project = projectId === null ? null : await findProject(db, agent.workspaceId, projectId)
  if (project === null || project.visibility === 'company') return true
  const viewer = { agentRef: agent.id, agentUuid: agent.uuid }
  return isProjectVisible(project, viewer, await hasGrant(db, project.id, agent.id))
}

export async function parentOf(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  return (await lookUpTask(db, caller, reference)) ?? fail('parent_task_not_found', { param: 'parentTaskId' })
}

/** A task to depend on. One of another workspace is told apart only by its id, which nobody guesses. */
export async function blockerOf(db: Db, caller: Caller, reference: string, param: string): Promise<TaskRow> {
  const task = await lookUpTask(db, caller, reference)
  if (task !== null) return task
  const elsewhere = hasPrefix(reference, 'tsk_') ? await findTaskById(db, reference) : null
  if (elsewhere !== null && elsewhere.workspaceId !== caller.workspaceId) fail('cross_company_dependency', { param })
  return fail('dependency_task_not_found', { param, details: { task: reference } })
}

/** Returns several tasks to depend on, in their order, which are read at once. */
export async function blockersOf(
  db: Db,
  caller: Caller,
  references: readonly string[],
  param: string,
): Promise<Pick<TaskRow, 'id'>[]> {
  const seen = await visibleTasks(db, caller, await listBriefByReferences(db, caller.workspaceId, references))
  const known = new Map(seen.flatMap((task) => [[task.id, task] as const, [task.key, task] as const]))
  const found: Pick<TaskRow, 'id'>[] = []
  for (const reference of references)
    found.push(
      known.get(reference) ?? known.get(reference.toUpperCase()) ?? (await blockerOf(db, caller, reference, param)),
    )
  return found
}

export async function checkRepo(db: Db, task: Pick<TaskRow, 'repoId' | 'baseBranch' | 'workspaceId'>): Promise<void> {
  if (task.baseBranch !== null && task.repoId === null) fail('base_branch_without_repo', { param: 'baseBranch' })
  if (task.repoId !== null && (await findRepo(db, task.workspaceId, task.repoId)) === null)
    fail('repo_not_found', { param: 'repoId' })
}

/**
 * Harness, model and effort that a task or a wake sets for runs must fit together, as far as the catalog knows. `modelParam`:
 * the model's name in the request.
 */
export function checkRunSettings(
  settings: Pick<TaskRow, 'modelId' | 'harness' | 'reasoningEffort'>,
  catalog: ModelCatalog,
  modelParam = 'modelId',
): void {
  const { modelId, harness, reasoningEffort } = settings
  if (modelId === null) return
  const model = catalog.find(modelId) ?? fail('model_not_found', { param: modelParam })
  if (reasoningEffort !== null && !model.efforts.includes(reasoningEffort))
    fail('reasoning_effort_unsupported', { param: 'reasoningEffort', allowedValues: model.efforts })
  if (harness !== null && harness !== model.harness && harnesses[harness].models === 'own')
    fail('harness_model_unsupported', { param: 'harness', allowedValues: [model.harness] })
}

/** Fails with `validation_error` when the task would have more than `most`. `of`: what they are. */
export function refuseBeyond(most: number, { count, param, of }: { count: number; param: string; of: string }): void {
  if (count > most) failField(param, `A task has at most ${most} ${of}.`)
}
