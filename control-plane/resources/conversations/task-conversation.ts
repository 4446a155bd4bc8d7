import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import type { TaskRow } from '../tasks/store.ts'
import { insertParticipants, type Participant } from './participant-store.ts'
import { findConversationOfTask, insertConversation, type ConversationRow } from './store.ts'

/** The fields of a task that its conversation needs. */
export type DiscussedTask = Pick<TaskRow, 'id' | 'workspaceId' | 'assigneeAgentRef' | 'createdByType' | 'createdByRef'>

/** The conversation that holds a task's comments, made if it does not exist. */
export async function ensureTaskConversation(
  db: Db,
  { task, world }: { task: DiscussedTask; world: World },
): Promise<ConversationRow> {
  const known = await findConversationOfTask(db, task.id)
  if (known) return known
  const at = world.now()
  const id = world.id('cnv_')
  const isNew = await insertConversation(db, {
    id,
    workspaceId: task.workspaceId,
    kind: 'dm',
    title: null,
    taskId: task.id,
    dmUser: null,
    dmAgent: null,
    createdByType: task.createdByType,
    createdByRef: task.createdByRef,
    createdAt: at,
  })
  if (isNew) await insertParticipants(db, id, { participants: participantsOf(task), at })
  const conversation = await findConversationOfTask(db, task.id)
  if (conversation === null) throw new Error(`the conversation of ${task.id} was neither found nor made`)
  return conversation
}

/** The task's creator and assignee. */
export function participantsOf(task: DiscussedTask): Participant[] {
  const { createdByType, createdByRef, assigneeAgentRef } = task
  const creator = createdByType === 'system' || createdByRef === null ? [] : [{ type: createdByType, id: createdByRef }]
  const isAssigneeElse = assigneeAgentRef !== null && assigneeAgentRef !== createdByRef
  return [...creator, ...(isAssigneeElse ? [{ type: 'agent' as const, id: assigneeAgentRef }] : [])]
}
