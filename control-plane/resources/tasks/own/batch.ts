import { idFrom, type RepoUuid } from '../../../../shared/lib/ids.ts'
import { ApiError, fail } from '../../../../shared/api/errors.ts'
import type { BatchDefaults, BatchItem } from '../../../../shared/api/task-shapes.ts'
import { createTask, linkBlockers, type Creating } from '../create.ts'
import {
  assigneeOf,
  assigneeReference,
  blockersOf,
  checkRepo,
  checkRunSettings,
  parentOf,
  projectOf,
} from '../lookup.ts'
import type { TaskRow } from '../store.ts'

/**
 * Makes all tasks of a batch in one transaction: a failing one undoes the others, and its error says which it was. What is
 * wrong with the defaults, with names within the batch or with the depth they make is `invalid_batch`.
 */
export async function createBatch(
  creating: Creating,
  { defaults = {}, items }: { defaults: BatchDefaults | undefined; items: readonly BatchItem[] },
): Promise<TaskRow[]> {
  const names = namesOf(items)
  const defaultParent = await checkDefaults(creating, defaults)
  const made: TaskRow[] = []
  for (const [index, item] of items.entries()) {
    made.push(
      await asItem(index, async () => {
        const { parent, isOfBatch } = await parentOfItem(creating, { item, index, made, names, defaultParent })
        try {
          return await createTask(creating, { body: withDefaults(item, defaults), parent })
        } catch (error) {
          if (!(error instanceof ApiError)) throw error
          if (error.code === 'parent_task_depth_exceeded' && isOfBatch)
            invalid('The batch nests tasks too deep.', { index })
          throw error.code === 'task_duplicate' ? duplicateWithin(error, made) : error
        }
      }),
    )
  }
  const waits: Waits = new Map()
  for (const [index, item] of items.entries())
    await asItem(index, () => linkItem(creating, { item, index, made, names, waits }))
  return made
}

/**
 * A task of the batch that looks like an earlier one of it is told by the place of that one: its key and id are undone with the
 * batch, and the next task gets that key.
 */
function duplicateWithin(error: ApiError, made: readonly TaskRow[]): ApiError {
  const id = (error.options.details?.match as { id?: unknown } | undefined)?.id
  const index = made.findIndex((task) => task.id === id)
  const match = made[index]
  if (match === undefined) return error
  const { title, status } = match
  return new ApiError('task_duplicate', {
    ...error.options,
    message: `Task ${index} of the batch looks like the same work: ${title}. Send \`force\` to create it all the same.`,
    details: { match: { index, title, status } },
  })
}

function invalid(message: string, details: Record<string, unknown>): never {
  return fail('invalid_batch', { message, details })
}

/** The index of each `ref`. */
function namesOf(items: readonly BatchItem[]): ReadonlyMap<string, number> {
  const names = new Map<string, number>()
  for (const [index, { ref }] of items.entries()) {
    if (ref === undefined) continue
    if (names.has(ref)) invalid(`Two tasks of the batch have the ref ${ref}.`, { index, ref })
    names.set(ref, index)
  }
  return names
}

/** The defaults are looked up by themselves, so that what is wrong with them is not said of the first task. */
async function checkDefaults(creating: Creating, defaults: BatchDefaults): Promise<TaskRow | null> {
  const { db, caller, catalog } = creating
  try {
    const parent = defaults.parentTaskId == null ? null : await parentOf(db, caller, defaults.parentTaskId)
    const project = defaults.projectId == null ? null : await projectOf(db, caller, defaults.projectId)
    const projectId = defaults.projectId === undefined ? (parent?.projectId ?? null) : (project?.id ?? null)
    const reference = assigneeReference(defaults.assignee)
    if (reference !== null) await assigneeOf(db, caller, { reference, projectId })
    const { modelId = null, harness = null, reasoningEffort = null } = defaults
    checkRunSettings({ modelId, harness, reasoningEffort }, catalog)
    const { baseBranch = null } = defaults
    const repoId = defaults.repoId == null ? null : idFrom<RepoUuid>(defaults.repoId)
    // A base branch may be meant for the repos that the tasks name themselves.
    await checkRepo(db, { repoId, baseBranch: repoId === null ? null : baseBranch, workspaceId: caller.workspaceId })
    return parent
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const details = { defaults: { code: error.code, param: error.options.param ?? null } }
    return fail('invalid_batch', { message: `defaults: ${error.message}`, param: 'defaults', details, cause: error })
  }
}

/** The item's own values, null included, take precedence over the defaults. */
function withDefaults(item: BatchItem, defaults: BatchDefaults): BatchItem {
  const given = Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined))
  const own = Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined))
  return { ...given, ...own } as BatchItem
}

interface InBatch {
  item: BatchItem
  made: readonly TaskRow[]
  names: ReadonlyMap<string, number>
}

async function parentOfItem(
  { db, caller }: Creating,
  { item, index, made, names, defaultParent }: InBatch & { index: number; defaultParent: TaskRow | null },
): Promise<{ parent: TaskRow | null; isOfBatch: boolean }> {
  const { parentTaskId } = item
  if (parentTaskId === undefined) return { parent: defaultParent, isOfBatch: defaultParent !== null }
  if (parentTaskId === null) return { parent: null, isOfBatch: false }
  const at = indexIn(parentTaskId, names)
  if (at === null) return { parent: await parentOf(db, caller, String(parentTaskId)), isOfBatch: false }
  if (at >= index) invalid('A parent within the batch stands before its subtasks.', { index, parentTaskId })
  return { parent: made[at]!, isOfBatch: true }
}

/** The tasks of the batch that each of them waits for, by their places. */
type Waits = Map<number, readonly number[]>

async function linkItem(
  { db, caller }: Creating,
  { item, index, made, names, waits }: InBatch & { index: number; waits: Waits },
): Promise<void> {
  const places: number[] = []
  const outside: string[] = []
  for (const reference of item.dependsOn ?? []) {
    const at = indexIn(reference, names)
    if (at !== null && at >= made.length) invalid('There is no such task in the batch.', { dependsOn: reference })
    if (at === null) outside.push(String(reference))
    else places.push(at)
  }
  const blockers = await blockersOf(db, caller, outside, 'dependsOn')
  waits.set(index, places)
  if (isWaitingForItself(waits, index)) fail('dependency_cycle', { param: 'dependsOn' })
  await linkBlockers(db, made[index]!, [...places.map((at) => made[at]!), ...blockers])
}

/**
 * Returns whether the task waits for itself within the batch: a task outside of it waits for none of its tasks, as nobody sees them yet.
 */
function isWaitingForItself(waits: Waits, index: number): boolean {
  const reached = new Set(waits.get(index))
  for (const at of reached) for (const next of waits.get(at) ?? []) reached.add(next)
  return reached.has(index)
}

/** The place in the batch that a number or a `ref` means; null: it is no name of the batch. */
function indexIn(reference: string | number, names: ReadonlyMap<string, number>): number | null {
  if (typeof reference === 'number') return reference
  return names.get(reference) ?? (/^\d{1,2}$/.test(reference) ? Number(reference) : null)
}

/** Says in an error which task of the batch it is about. */
async function asItem<T>(index: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 'invalid_batch') throw error
    const { options } = error
    return fail(error.code, {
      ...options,
      message: error.message,
      status: error.status,
      param: `tasks.${index}${options.param === undefined ? '' : `.${options.param}`}`,
      details: { ...options.details, index },
    })
  }
}
