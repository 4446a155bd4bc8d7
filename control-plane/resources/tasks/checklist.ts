import { actorOf } from '../../http/callers.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { taskLinkRoutes } from '../../../shared/api/task-links.ts'
import { answer, type HandlerInput } from '../../http/implement.ts'
import { recordActivity } from './record.ts'
import {
  countChecklistItems,
  findChecklistItem,
  insertChecklistItem,
  listChecklists,
  replaceChecklistItem,
  replacePositions,
  type ChecklistRow,
} from './checklist-store.ts'
import { changeableTask } from './lookup.ts'
import { presentItem } from './present.ts'
import { movedPositions, type Actor } from './rules.ts'

/** The task is locked while its checklist changes, so that positions stay without gaps. */

type Routes = typeof taskLinkRoutes

export async function addItem({ db, caller, params, body, world }: HandlerInput<Routes['addItem']>) {
  const task = await changeableTask(db, caller, params.id)
  const now = world.now()
  const item: ChecklistRow = {
    id: world.id('chk_'),
    taskId: task.id,
    text: textOf(body.text),
    done: false,
    position: await countChecklistItems(db, task.id),
    completedAt: null,
    completedByType: null,
    completedById: null,
    archivedAt: null,
    createdAt: now,
    updatedAt: now,
  }
  await insertChecklistItem(db, item)
  const data = { itemId: item.id, text: item.text }
  await recordActivity(db, { taskId: task.id, kind: 'checklist.item_added', actor: actorOf(caller), data, world })
  return answer(201, presentItem(item))
}

export async function updateItem({ db, caller, params, body, world }: HandlerInput<Routes['updateItem']>) {
  const task = await changeableTask(db, caller, params.id)
  const before = await findChecklistItem(db, task.id, params.itemId)
  if (before === null) return fail('checklist_item_not_found', { param: 'itemId' })
  const actor = actorOf(caller)
  const now = world.now()
  const changed = withChanges(before, { ...body, actor, now })
  const count = await countChecklistItems(db, task.id)
  // One that comes back stands at the end.
  const returned = before.archivedAt !== null && changed.archivedAt === null ? { ...changed, position: count } : changed
  await replaceChecklistItem(db, returned)
  const items = (await listChecklists(db, [task.id])).get(task.id) ?? []
  const place = { id: before.id, position: body.position ?? returned.position }
  const moved = returned.archivedAt === null ? movedPositions(items, place) : closedUp(items)
  await replacePositions(db, moved)
  const data = { itemId: before.id, text: returned.text, fields: Object.keys(body) }
  await recordActivity(db, { taskId: task.id, kind: 'checklist.item_updated', actor, data, world })
  return presentItem(returned)
}

/** Blank and missing text alike is no item. */
function textOf(text: string | null | undefined): string {
  const trimmed = text?.trim() ?? ''
  return trimmed === '' ? fail('invalid_checklist_item', { param: 'text' }) : trimmed
}

function withChanges(
  before: ChecklistRow,
  change: HandlerInput<Routes['updateItem']>['body'] & { actor: Actor; now: number },
): ChecklistRow {
  const { text, done, archived, actor, now } = change
  const isDone = done ?? before.done
  const completion =
    isDone === before.done
      ? {}
      : {
          done: isDone,
          completedAt: isDone ? now : null,
          completedByType: isDone && actor.type !== 'system' ? actor.type : null,
          completedById: isDone ? actor.id : null,
        }
  return {
    ...before,
    ...completion,
    ...(text === undefined ? {} : { text: textOf(text) }),
    ...(archived === undefined ? {} : { archivedAt: archived ? (before.archivedAt ?? now) : null }),
    updatedAt: now,
  }
}

const closedUp = (items: readonly ChecklistRow[]) =>
  items
    .map(({ id, position }, at) => ({ id, position: at, before: position }))
    .filter(({ position, before }) => position !== before)
