import type { ConversationId, ProjectUuid } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import { findConversation } from '../../resources/conversations/store.ts'
import { findProject } from '../../resources/projects/store.ts'

/** True for work of a private agent, on a task of a private project, or in a dm that belongs to no task. */
export async function isWorkPrivate(
  db: Db,
  of: {
    agent: Pick<AgentRow, 'visibility' | 'workspaceId'>
    task?: { projectId: ProjectUuid | null } | null
    conversationId?: ConversationId | null
  },
): Promise<boolean> {
  const { agent, task = null, conversationId = null } = of
  if (agent.visibility === 'private') return true
  const projectId = task?.projectId ?? null
  if (projectId !== null && (await findProject(db, agent.workspaceId, projectId))?.visibility === 'private') return true
  if (conversationId === null) return false
  const conversation = await findConversation(db, conversationId)
  return conversation?.kind === 'dm' && conversation.taskId === null
}
