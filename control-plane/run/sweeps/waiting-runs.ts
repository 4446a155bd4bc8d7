import { gateReasons, type GateReason } from '../../../shared/api/agent-runs.ts'
import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'

/** What holds a run that waits. `none`: a device may take it; `sandbox`: its place is being made. */
export const holds = [...gateReasons, 'none', 'sandbox'] as const
export type Hold = GateReason | 'none' | 'sandbox'

export interface Held {
  count: number
  /** When the first of them was made; null: there is none. */
  oldestAt: number | null
}

/** The runs of a workspace that wait, by what holds them, as one round counts them. */
export class WaitingCount {
  readonly byHold = new Map<Hold, Held>()

  add(hold: Hold, createdAt: number): void {
    const { count, oldestAt } = this.byHold.get(hold) ?? nobody
    this.byHold.set(hold, { count: count + 1, oldestAt: Math.min(createdAt, oldestAt ?? Infinity) })
  }
}

const nobody: Held = { count: 0, oldestAt: null }

/**
 * What the last round of the sweep found that judges all runs which wait. Which gate holds a run is stored nowhere, as it follows from facts
 * that change all the time, so this is the one place where all of them are known, at no cost of its own.
 */
export class WaitingRuns {
  private readonly workspaces = new Map<WorkspaceUuid, WaitingCount>()

  /** In no other workspace a run waits. */
  keep(workspaceIds: readonly WorkspaceUuid[]): void {
    const kept = new Set(workspaceIds)
    for (const id of this.workspaces.keys()) if (!kept.has(id)) this.workspaces.delete(id)
  }

  record(workspaceId: WorkspaceUuid, count: WaitingCount): void {
    this.workspaces.set(workspaceId, count)
  }

  /** Of all workspaces; each hold is there. */
  total(): ReadonlyMap<Hold, Held> {
    const total = new Map<Hold, Held>(holds.map((hold) => [hold, nobody]))
    for (const { byHold } of this.workspaces.values())
      for (const [hold, { count, oldestAt }] of byHold) {
        const before = total.get(hold)!
        const oldest = Math.min(before.oldestAt ?? Infinity, oldestAt ?? Infinity)
        total.set(hold, { count: before.count + count, oldestAt: oldest })
      }
    return total
  }
}
