import type { ActorRef } from '../../../../shared/lib/ids.ts'
import { hasRole, type Caller } from '../../../http/callers.ts'
import type { Participant } from '../participant-store.ts'
import type { ConversationRow } from '../store.ts'

// Decisions about conversations.

export const triggerModeOf = ({ kind }: Pick<ConversationRow, 'kind'>) =>
  kind === 'dm' ? ('respond_to_all' as const) : ('mention_to_wake' as const)

/** Participants and workspace admins may change the title and the runtime; only admins may archive and delete. */
export function capabilitiesOf(
  conversation: Pick<ConversationRow, 'kind' | 'taskId'>,
  facts: { caller: Caller; isIn: boolean },
): { canEdit: boolean; canArchive: boolean; canDelete: boolean } {
  const isAdmin = hasRole(facts.caller, 'admin')
  const isChannel = conversation.kind === 'channel'
  return {
    canEdit: isAdmin || facts.isIn,
    canArchive: isAdmin && isChannel,
    canDelete: isAdmin && isChannel && conversation.taskId === null,
  }
}

/** The reason why it cannot be deleted; belonging to a task is reported first. */
export function deletionRefusal(
  conversation: Pick<ConversationRow, 'kind' | 'taskId'>,
  hasLiveRun: boolean,
): 'conversation_task_linked' | 'conversation_dm_not_deletable' | 'conversation_has_live_run' | null {
  if (conversation.taskId !== null) return 'conversation_task_linked'
  if (conversation.kind === 'dm') return 'conversation_dm_not_deletable'
  return hasLiveRun ? 'conversation_has_live_run' : null
}

/** The two participants of a dm that belongs to no task. */
export function dmOf(
  participants: readonly Participant[],
): { agentRef: ActorRef; personRef: ActorRef } | 'dm_requires_one_agent' | 'dm_requires_one_user' {
  const ids = (type: 'user' | 'agent') =>
    participants.filter((participant) => participant.type === type).map(({ id }) => id)
  const [[agentRef, ...otherAgents], [personRef, ...otherPersons]] = [ids('agent'), ids('user')]
  if (agentRef === undefined || otherAgents.length > 0) return 'dm_requires_one_agent'
  return personRef === undefined || otherPersons.length > 0 ? 'dm_requires_one_user' : { agentRef, personRef }
}

/** Returns when somebody last posted (ms UTC), or the start of a conversation in which nobody did: lists are in this order. */
export const activityOf = (row: Pick<ConversationRow, 'lastActivityAt' | 'createdAt'>): number =>
  row.lastActivityAt ?? row.createdAt
