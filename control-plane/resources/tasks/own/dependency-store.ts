import type { TaskId } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { time } from '../../../db/columns.ts'
import { taskId } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { countBy, countOf } from '../../../db/reads.ts'
import { query } from '../../../db/statement.ts'
import { table, type RowOf } from '../../../db/table.ts'
import { briefTasks, type BriefTask } from '../store.ts'

/** Dependencies between tasks: `taskId` depends on `dependsOnTaskId`. Only `blocks` holds work up. */
export const dependencyTypes = ['blocks', 'related'] as const

const dependencies = table('task_dependencies', {
  taskId,
  dependsOnTaskId: taskId,
  type: z.enum(dependencyTypes),
  createdAt: time,
})
export type DependencyRow = RowOf<typeof dependencies>

/** Stores a dependency; one that is there already gets the new type. */
export async function replaceDependency(db: Db, dependency: DependencyRow): Promise<void> {
  await db('task_dependencies')
    .insert(dependencies.toColumns(dependency))
    .onConflict(['task_id', 'depends_on_task_id'])
    .merge(['type'])
}

/** Stores the dependencies of a new task, which has none yet. */
export async function insertDependencies(db: Db, added: readonly DependencyRow[]): Promise<void> {
  await dependencies.insert(db, added)
}

/** Counts the tasks that a task depends on, in either type. */
export async function countBlockedBy(db: Db, taskId: TaskId): Promise<number> {
  return countOf(db('task_dependencies').where({ task_id: taskId }))
}

/** Counts the tasks that depend on each of these, in either type; those on which none does are left out. */
export async function countBlocking(db: Db, taskIds: readonly TaskId[]): Promise<Map<string, number>> {
  if (taskIds.length === 0) return new Map()
  return countBy(db('task_dependencies').whereIn('depends_on_task_id', [...taskIds]), 'depends_on_task_id')
}

export async function findDependency(
  db: Db,
  { taskId, dependsOnTaskId }: Pick<DependencyRow, 'taskId' | 'dependsOnTaskId'>,
): Promise<DependencyRow | null> {
  return dependencies.find(db, { taskId, dependsOnTaskId })
}

export async function removeDependency(
  db: Db,
  { taskId, dependsOnTaskId }: Pick<DependencyRow, 'taskId' | 'dependsOnTaskId'>,
): Promise<boolean> {
  return (await db('task_dependencies').where({ task_id: taskId, depends_on_task_id: dependsOnTaskId }).delete()) === 1
}

export interface LinkedTask {
  task: BriefTask
  type: DependencyRow['type']
  createdAt: number
}

/** Made once: making a schema takes far longer than reading a row by it. */
const linkColumns = z.object({ link_type: z.enum(dependencyTypes), linked_at: time })

/** The tasks that this one depends on (`blockedBy`), or that depend on it (`blocking`), oldest first. */
export async function listDependencies(
  db: Db,
  taskId: TaskId,
  direction: 'blockedBy' | 'blocking',
): Promise<LinkedTask[]> {
  const [own, other] = direction === 'blockedBy' ? ['task_id', 'depends_on_task_id'] : ['depends_on_task_id', 'task_id']
  const rows: unknown[] = await db('task_dependencies')
    .join('tasks', 'tasks.id', `task_dependencies.${other}`)
    .where({ [`task_dependencies.${own}`]: taskId })
    .orderBy(['task_dependencies.created_at', 'tasks.id'])
    .select(
      briefTasks.fields('tasks'),
      'task_dependencies.type as link_type',
      'task_dependencies.created_at as linked_at',
    )
  return rows.map((value) => {
    const link = linkColumns.parse(value)
    return { task: briefTasks.part(value), type: link.link_type, createdAt: link.linked_at }
  })
}

/** Tasks whose links are read at once. */
const readTogether = 50
/** Chains that are followed at once, and how far. */
const fewChains = 20
const chainLength = 100

const behind = query(
  `select distinct depends_on_task_id as id from task_dependencies where type = 'blocks' and task_id in ?`,
  z.object({ id: taskId }),
)
/** Follows a chain from each task, as long as there is one way on. */
const alongChains = query(
  `with recursive chain (start, id, depth) as (
     select id, id, 0 from tasks where id in ?
     union all
     select chain.start,
            (select way.depends_on_task_id from task_dependencies way
             where way.task_id = chain.id and way.type = 'blocks' limit 1),
            chain.depth + 1
     from chain
     where chain.depth < ${chainLength} and 1 = (select count(*) from (
       select 1 from task_dependencies ways where ways.task_id = chain.id and ways.type = 'blocks' limit 2) two))
   select start, id from chain order by depth`,
  z.object({ start: taskId, id: taskId }),
)

/**
 * True when `from` waits for `to`, directly or through others. The links are read in pieces, since all of a workspace at
 * once would hold up everybody else; chains are followed many links at once.
 */
export async function isWaitingFor(db: Db, from: TaskId, to: TaskId): Promise<boolean> {
  const reached = new Set([from])
  const ahead = [from]
  while (ahead.length > 0) {
    const found = (await behind.list(db, [ahead.splice(0, readTogether)])).map(({ id }) => id)
    if (found.includes(to)) return true
    const fresh = found.filter((id) => !reached.has(id))
    for (const id of fresh) reached.add(id)
    if (fresh.length === 0 || fresh.length > fewChains) {
      ahead.push(...fresh)
      continue
    }
    const along = await alongChains.list(db, [fresh])
    if (along.some(({ id }) => id === to)) return true
    const ends = new Map(along.map(({ start, id }) => [start, id]))
    for (const [start, id] of ends) if (id === start || !reached.has(id)) ahead.push(id)
    for (const { id } of along) reached.add(id)
  }
  return false
}
