import { idFrom, type RepoUuid } from '../../../../../shared/lib/ids.ts'
import { fail } from '../../../../../shared/api/errors.ts'
import type { BodyOf } from '../../../../../shared/api/route.ts'
import type { taskRoutes } from '../../../../../shared/api/tasks.ts'
import type { World } from '../../../../../shared/lib/world.ts'
import type { ModelCatalog } from '../../../../catalog/catalog.ts'
import type { Db } from '../../../../db/open.ts'
import { actorOf, type Caller } from '../../../../http/callers.ts'
import { causeOfCaller } from '../../../runs/cause.ts'
import { recordActivity } from '../../record.ts'
import { checkAssigneeAccess, checkRepo, checkRunSettings, projectOf } from '../../lookup.ts'
import { wakeAtOf } from '../../rules.ts'
import { replaceTask, type TaskRow } from '../../store.ts'
import { wakeForAssignment } from '../wakes.ts'

type Body = BodyOf<typeof taskRoutes.update>
type Fields = Partial<TaskRow>

export interface Update {
  body: Body
  caller: Caller
  world: World
  catalog: ModelCatalog
}

/** Writes the fields that the body names. One that changes nothing is not recorded. */
export async function updateTask(tx: Db, before: TaskRow, update: Update): Promise<TaskRow> {
  const { caller, world } = update
  const sent = { ...(await fieldsOf(tx, update)), ...(await authorsOf(tx, update)) }
  const names = (Object.keys(sent) as (keyof TaskRow)[]).filter((name) => sent[name] !== before[name])
  if (names.length === 0) return before
  const now = world.now()
  const after: TaskRow = { ...before, ...sent, updatedAt: now }
  await check(tx, { before, after, names, catalog: update.catalog })
  const isRescheduled = names.includes('startAt')
  const task = await replaceTask(tx, before, { ...after, wakeAt: isRescheduled ? wakeAtOf(after, now) : before.wakeAt })
  const actor = actorOf(caller)
  await recordActivity(tx, {
    taskId: task.id,
    kind: 'task.updated',
    actor,
    data: changesOf(before, task, names),
    world,
  })
  // A task that waited for its start begins when the start is removed or lies in the past now.
  if (before.wakeAt !== null && task.wakeAt === null) await wakeForAssignment(tx, { task, actor, world })
  return task
}

/** Whoever sends a text answers for it, also where it is the text that stands there. */
async function authorsOf(tx: Db, { body: { title, description }, caller }: Update): Promise<Fields> {
  if (title === undefined && description === undefined) return {}
  const by = await causeOfCaller(tx, caller)
  return {
    ...(title !== undefined && { titleByUuid: by }),
    ...(description !== undefined && { descriptionByUuid: description === null ? null : by }),
  }
}

/** A change of a text's author is shown as a change of the field of the text. */
const shownAs: Partial<Record<keyof TaskRow, keyof TaskRow>> = {
  titleByUuid: 'title',
  descriptionByUuid: 'description',
}

async function fieldsOf(tx: Db, { body, caller }: Update): Promise<Fields> {
  const { projectId, dueAt, startAt, repoId, ...plain } = body
  const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined)) as Fields
  const time = (text: string | null) => (text === null ? null : Date.parse(text))
  return {
    ...given,
    ...(projectId === undefined
      ? {}
      : { projectId: projectId === null ? null : (await projectOf(tx, caller, projectId)).id }),
    ...(dueAt === undefined ? {} : { dueAt: time(dueAt) }),
    ...(startAt === undefined ? {} : { startAt: time(startAt) }),
    ...(repoId === undefined ? {} : { repoId: repoId === null ? null : idFrom<RepoUuid>(repoId.toLowerCase()) }),
  }
}

async function check(
  tx: Db,
  change: { before: TaskRow; after: TaskRow; names: readonly (keyof TaskRow)[]; catalog: ModelCatalog },
): Promise<void> {
  const { before, after, catalog } = change
  const touches = (...names: (keyof TaskRow)[]) => names.some((name) => change.names.includes(name))
  if (touches('branchName') && before.branchName !== null) fail('task_branch_immutable', { param: 'branchName' })
  // Stored values stay valid when the catalog or the repos change, until they are edited.
  if (touches('repoId', 'baseBranch')) await checkRepo(tx, after)
  if (touches('modelId', 'harness', 'reasoningEffort')) checkRunSettings(after, catalog)
  if (touches('projectId')) await checkAssigneeAccess(tx, after)
}

/** Old and new values; of long texts only that they changed. */
function changesOf(before: TaskRow, after: TaskRow, names: readonly (keyof TaskRow)[]): Record<string, unknown> {
  const shown = [...new Set(names.map((name) => shownAs[name] ?? name))]
  return {
    fields: shown,
    changes: Object.fromEntries(
      shown.filter((name) => name !== 'description').map((name) => [name, { from: before[name], to: after[name] }]),
    ),
  }
}
