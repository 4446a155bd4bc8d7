import type { AgentRef, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import { publish } from '../../db/transaction.ts'
import type { Wake } from './wake.ts'
import { insertWakes, type NewWake } from './wake-store.ts'

/** A wake as it is asked for, and waits to become a run. */
export interface RequestedWake extends Wake {
  workspaceId: WorkspaceUuid
  agentRef: AgentRef
  prompt: string
  /** `tsk_` id of the task the run is to work on. */
  taskId?: TaskId | null
  /** The run whose harness session is gone on with. Default: the agent's last ended one of the task, else of the conversation. */
  parentRunId?: RunId | null
  /** A second request with the same key in the workspace is the same wake. */
  key?: string
}

/**
 * Asks for a run, in the transaction of what is the reason for it. The waker makes the run after the commit, exactly
 * once. A wake that admission refuses is dropped: what lets it through later sends a wake of its own.
 */
export const requestWake = (db: Db, request: RequestedWake, world: World): Promise<void> =>
  requestWakes(db, [request], world)

/** Asks for several runs like `requestWake`, and writes their wakes together. */
export async function requestWakes(db: Db, requests: readonly RequestedWake[], world: World): Promise<void> {
  const at = world.now()
  const rows: NewWake[] = []
  for (const request of requests) {
    rows.push({
      id: world.id('wak_'),
      workspaceId: request.workspaceId,
      agentRef: request.agentRef,
      triggerSource: request.triggerSource,
      requestedByRef: request.requestedByRef,
      causedByUuid: request.causedByUuid,
      wordsBy: [...request.wordsBy],
      prompt: request.prompt,
      taskId: request.taskId ?? null,
      conversationId: request.conversationId ?? null,
      parentRunId: request.parentRunId ?? null,
      allowCalls: [...(request.allowCalls ?? [])],
      key: request.key ?? null,
      createdAt: at,
    })
  }
  const added = await insertWakes(db, rows)
  for (const { id } of rows) if (added.has(id)) await publish(db, { topic: 'wake.requested', key: id, at })
}
