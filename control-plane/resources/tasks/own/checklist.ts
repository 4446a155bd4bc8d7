import { changedRow } from '../../../db/changed-row.ts'
import { actorOf } from '../../../http/callers.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { taskLinkRoutes } from '../../../../shared/api/task-links.ts'
import { answer, type HandlerInput } from '../../../http/implement.ts'
import { recordActivity } from '../record.ts'
import type { Db } from '../../../db/open.ts'
import { refuseBeyond, changeableTask } from '../lookup.ts'
import {
  countChecklistItems,
  findChecklistItem,
  insertChecklistItems,
  replaceChecklistItem,
  shiftPositions,
  type ChecklistRow,
} from './checklist-store.ts'
import { presentItem } from '../present.ts'
import { mostChecklistItems, newItem, type Actor } from '../rules.ts'

// The task is locked while its checklist changes, so that positions stay without gaps.

type Routes = typeof taskLinkRoutes

export async function addItem({ db, caller, params, body, world }: HandlerInput<Routes['addItem']>) {
  const task = await changeableTask(db, caller, params.id)
  const position = await countChecklistItems(db, task.id)
  const text = textOf(body.text)
  refuseMore(position)
  const item = newItem({ id: world.id('chk_'), taskId: task.id, text, position, at: world.now() })
  await insertChecklistItems(db, [item])
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
  const position = await placeOf(db, { before, isShown: changed.archivedAt === null, wanted: body.position })
  if (changed === before && position === before.position) return presentItem(before)
  const item = { ...changed, position, updatedAt: now }
  await replaceChecklistItem(db, item)
  const data = { itemId: before.id, text: item.text, fields: Object.keys(body) }
  await recordActivity(db, { taskId: task.id, kind: 'checklist.item_updated', actor, data, world })
  return presentItem(item)
}

/** The place of the item after the change, for which the others have made room. An archived one keeps the place it had. */
async function placeOf(
  db: Db,
  { before, isShown, wanted }: { before: ChecklistRow; isShown: boolean; wanted: number | undefined },
): Promise<number> {
  const { taskId } = before
  const count = await countChecklistItems(db, taskId)
  const wasShown = before.archivedAt === null
  if (!wasShown && !isShown) return before.position
  if (!wasShown) refuseMore(count)
  // An item that comes back stands at the end, and one that is archived leaves from there.
  const from = wasShown ? before.position : count
  const last = wasShown ? count - 1 : count
  const to = isShown ? Math.min(wanted ?? from, last) : last
  await shiftPositions(db, { taskId, from, to })
  return isShown ? to : before.position
}

const refuseMore = (count: number) =>
  refuseBeyond(mostChecklistItems, { count: count + 1, param: 'text', of: 'items in its checklist' })

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
          completedByRef: isDone ? actor.id : null,
        }
  const changes = {
    ...completion,
    ...(text === undefined ? {} : { text: textOf(text) }),
    ...(archived === undefined ? {} : { archivedAt: archived ? (before.archivedAt ?? now) : null }),
  }
  return changedRow(before, changes, now)
}
