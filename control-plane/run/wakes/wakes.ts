import type { ActorRef, AgentRef, ConversationId, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { AllowedCall } from '../../../shared/runs/spec.ts'
import type { Db } from '../../db/open.ts'
import { publish } from '../../db/transaction.ts'
import type { Asked } from '../../trust/askers.ts'
import { insertWakes, type NewWake } from './wake-store.ts'

/** `asked` of trust/askers.ts makes what it says of who asked. */
export interface WakeRequest extends Asked {
  workspaceId: WorkspaceUuid
  agentId: AgentRef
  /** Public id of the person (`usr_`) or agent (`agt_`) behind the wake. */
  requestedBy: ActorRef | null
  prompt: string
  /** `tsk_` id of the task the run is to work on. */
  taskId?: TaskId | null
  /** The conversation the run answers in. Runs of one agent in one conversation follow one another. */
  conversationId?: ConversationId | null
  /** The run whose harness session is gone on with. Default: the agent's last ended one of the task, else of the conversation. */
  continues?: RunId | null
  /** Tool calls that a person approved; each is allowed once. */
  allowCalls?: readonly AllowedCall[]
  /** A second request with the same key in the workspace is the same wake. */
  key?: string
}

/**
 * Asks for a run, in the transaction of what is the reason for it. The waker makes the run after the commit, exactly
 * once. A wake that admission refuses is dropped: what lets it through later sends a wake of its own.
 */
export const requestWake = (db: Db, request: WakeRequest, world: World): Promise<void> =>
  requestWakes(db, [request], world)

/** The same for many, written together. */
export async function requestWakes(db: Db, requests: readonly WakeRequest[], world: World): Promise<void> {
  const at = world.now()
  const rows: NewWake[] = []
  for (const request of requests) {
    rows.push({
      id: world.id('wak_'),
      workspaceId: request.workspaceId,
      agentId: request.agentId,
      triggerSource: request.triggerSource,
      requestedBy: request.requestedBy,
      causedByUserId: request.causedBy,
      wordsBy: [...request.wordsBy],
      prompt: request.prompt,
      taskId: request.taskId ?? null,
      conversationId: request.conversationId ?? null,
      continuesRunId: request.continues ?? null,
      allowCalls: [...(request.allowCalls ?? [])],
      key: request.key ?? null,
      createdAt: at,
    })
  }
  const added = await insertWakes(db, rows)
  for (const { id } of rows) if (added.has(id)) await publish(db, { topic: 'wake.requested', key: id, at })
}
