import { z } from 'zod'
import { text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { briefTasks, type BriefTask } from './store.ts'

/** Dependencies between tasks: `taskId` depends on `dependsOnTaskId`. Only `blocks` holds work up. */
export const dependencyTypes = ['blocks', 'related'] as const

const dependencies = table('task_dependencies', {
  taskId: text,
  dependsOnTaskId: text,
  type: z.enum(dependencyTypes),
  createdAt: time,
})
export type DependencyRow = RowOf<typeof dependencies>

/** One that is there already gets the new type. */
export async function replaceDependency(db: Db, dependency: DependencyRow): Promise<void> {
  await db('task_dependencies')
    .insert(dependencies.toColumns(dependency))
    .onConflict(['task_id', 'depends_on_task_id'])
    .merge(['type'])
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

/** The tasks that this one depends on (`blockedBy`), or that depend on it (`blocking`), oldest first. */
export async function listDependencies(
  db: Db,
  taskId: string,
  direction: 'blockedBy' | 'blocking',
): Promise<LinkedTask[]> {
  const [own, other] = direction === 'blockedBy' ? ['task_id', 'depends_on_task_id'] : ['depends_on_task_id', 'task_id']
  const rows: unknown[] = await db('task_dependencies')
    .join('tasks', 'tasks.id', `task_dependencies.${other}`)
    .where({ [`task_dependencies.${own}`]: taskId })
    .orderBy([{ column: 'task_dependencies.created_at' }, { column: 'tasks.id' }])
    .select(
      briefTasks.fields('tasks'),
      'task_dependencies.type as link_type',
      'task_dependencies.created_at as linked_at',
    )
  return rows.map((value) => {
    const link = z.object({ link_type: z.enum(dependencyTypes), linked_at: time }).parse(value)
    return { task: briefTasks.part(value), type: link.link_type, createdAt: link.linked_at }
  })
}

/** True when `from` waits for `to`, directly or through others. */
export async function isWaitingFor(db: Db, from: string, to: string): Promise<boolean> {
  const found: unknown[] = await db
    .withRecursive('waits_for', (chain) => {
      void chain
        .select('depends_on_task_id')
        .from('task_dependencies')
        .where({ task_id: from, type: 'blocks' })
        .union((more) => {
          void more
            .select('task_dependencies.depends_on_task_id')
            .from('task_dependencies')
            .join('waits_for', 'waits_for.depends_on_task_id', 'task_dependencies.task_id')
            .where('task_dependencies.type', 'blocks')
        })
    })
    .from('waits_for')
    .where({ depends_on_task_id: to })
    .select('depends_on_task_id')
    .limit(1)
  return found.length > 0
}
