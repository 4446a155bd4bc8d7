import type { Db } from '../db/open.ts'
import { findAgent, type AgentRow } from '../resources/agents/store.ts'
import { isController, livenessOf } from '../resources/devices/rules.ts'
import { listDevicesOfWorkspace } from '../resources/devices/store.ts'
import { findFolder, type FolderRow } from '../resources/folders/store.ts'
import { countLiveOfDevices, findRun, type RunRow } from '../resources/runs/store.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import type { PlacementFacts, RunFacts } from './placement.ts'

/** The devices of a workspace as `placeRun` wants them. With `lock`, their capacity stays ours until the transaction ends. */
export async function loadPlacementFacts(
  db: Db,
  workspaceId: string,
  options: { now: number; leaseMs: number; lock: boolean },
): Promise<PlacementFacts> {
  const devices = await listDevicesOfWorkspace(db, workspaceId, options.lock)
  const used = devices.length
    ? await countLiveOfDevices(
        db,
        devices.map((device) => device.publicId),
      )
    : new Map<string, number>()
  const workspace = await findWorkspace(db, workspaceId)
  return {
    defaultDevice: workspace?.defaultDevice ?? null,
    devices: devices.map((device) => ({
      publicId: device.publicId,
      userId: device.userId,
      liveness: livenessOf(device, options.now, options.leaseMs),
      isLinked: device.replicaId !== null,
      isController: isController(device.platform),
      remoteControlRevoked: device.remoteControlRevokedAt !== null,
      accepting: device.claimState?.accepting ?? true,
      capacity: device.maxConcurrent,
      used: used.get(device.publicId) ?? 0,
    })),
  }
}

/** What `placeRun` must know of one run. The agent may be given when it is at hand. */
export async function loadRunFacts(db: Db, run: RunRow, agent?: AgentRow | null): Promise<RunFacts> {
  return toRunFacts(run, {
    agent: agent ?? (await findAgent(db, run.agentId)),
    folder: run.folderId === null ? null : await findFolder(db, run.workspaceId, run.folderId),
    parent: run.parentRunId === null ? null : await findRun(db, run.parentRunId),
  })
}

/** The same from rows at hand. */
export function toRunFacts(
  run: RunRow,
  rows: {
    agent: Pick<AgentRow, 'ownerUserId'> | null
    folder: Pick<FolderRow, 'device'> | null
    parent: Pick<RunRow, 'sessionId' | 'device'> | null
  },
): RunFacts {
  return {
    // A folder that was removed while the run waited names no device, so the run waits until its time is up.
    folderDevice: run.folderId === null ? null : (rows.folder?.device ?? ''),
    sessionDevice: rows.parent?.sessionId ? rows.parent.device : null,
    ownerUserId: rows.agent?.ownerUserId ?? null,
  }
}
