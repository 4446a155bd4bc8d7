import type { LivenessStatus } from '../resources/devices/rules.ts'

/**
 * Where a queued run may go, decided from facts. The same decision answers `gateReason` at read time and picks the
 * device at dispatch time, so what a person reads is what the dispatcher does.
 */

export interface DeviceFacts {
  publicId: string
  userId: string
  liveness: LivenessStatus
  /** A replica holds its link now. A device counts as connected for a while after its link was lost. */
  isLinked: boolean
  isController: boolean
  remoteControlRevoked: boolean
  /** What the device said last of itself; true before its first report. */
  accepting: boolean
  capacity: number
  /** Runs it holds or is offered. */
  used: number
}

export interface PlacementFacts {
  devices: readonly DeviceFacts[]
  /** Durable id of the workspace's default device. */
  defaultDevice: string | null
}

export interface RunFacts {
  /** Device of the folder the run starts in; null when it starts in the home folder. */
  folderDevice: string | null
  /** Device whose harness session the run goes on with. */
  sessionDevice: string | null
  ownerUserId: string | null
  /** Another run of the same task was first and still lives. */
  isTaskLocked: boolean
}

export type GateReason = 'no_device' | 'capacity' | 'task_locked'
export type Placement = { kind: 'device'; publicId: string } | { kind: 'gate'; reason: GateReason }

/**
 * The folder's device, else the device that holds the session, the workspace's default device, then the owner's other
 * devices, the emptiest first (DESIGN, "The main job, step by step", 3).
 */
export function placeRun(run: RunFacts, facts: PlacementFacts): Placement {
  if (run.isTaskLocked) return { kind: 'gate', reason: 'task_locked' }
  const able = candidates(run, facts).filter(
    (device) => device.liveness === 'connected' && !device.isController && !device.remoteControlRevoked,
  )
  const ready = able.filter((device) => device.accepting && device.used < device.capacity)
  // A device that lost its link is passed over, but not the one with the session: it may only be restarting its daemon.
  const free = ready.find((device) => device.isLinked || device.publicId === run.sessionDevice) ?? ready[0]
  if (free) return { kind: 'device', publicId: free.publicId }
  return { kind: 'gate', reason: able.length === 0 ? 'no_device' : 'capacity' }
}

function candidates(run: RunFacts, facts: PlacementFacts): DeviceFacts[] {
  const byId = (publicId: string | null) => facts.devices.filter((device) => device.publicId === publicId)
  if (run.folderDevice !== null) return byId(run.folderDevice)
  const owned = facts.devices
    .filter((device) => device.userId === run.ownerUserId)
    .toSorted((a, b) => b.capacity - b.used - (a.capacity - a.used) || (a.publicId < b.publicId ? -1 : 1))
  return [...new Set([...byId(run.sessionDevice), ...byId(facts.defaultDevice), ...owned])]
}

const descriptions: Record<GateReason, string> = {
  no_device: 'No device that may take this run is connected. Connect one with `svc device connect`.',
  task_locked: 'Another run works on the task. This one starts when that one ends.',
  capacity: 'Every device that may take this run is busy. It starts when a run there ends.',
}
export const describeGate = (reason: GateReason): string => descriptions[reason]
