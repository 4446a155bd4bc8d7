import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import type { EndReport, EventsHeader, ServerMessage } from '../../shared/device/protocol.ts'
import type { DeviceRef, RunId, WorkspaceUuid } from '../../shared/lib/ids.ts'

interface From {
  /** Durable id of the sending device. */
  device: DeviceRef
  /** The workspace of the device. */
  workspaceId: WorkspaceUuid
  send(message: ServerMessage): void
  giveUp(): void
}
export type IngestItem = From &
  (
    | { kind: 'events'; header: EventsHeader; body: Buffer }
    | { kind: 'change_set'; runId: RunId; fence: number; result: ChangeSetResult }
    | { kind: 'ended'; runId: RunId; fence: number; report: EndReport; endedAgoMs?: number | undefined }
  )
