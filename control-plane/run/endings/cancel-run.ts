import type { World } from '../../../shared/lib/world.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import { publish } from '../../db/transaction.ts'
import type { Tx } from '../../db/open.ts'
import { livenessOf } from '../../resources/devices/rules.ts'
import { findDeviceByPublicId } from '../../resources/devices/store.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { changeRun } from '../change-store.ts'
import { finishRun } from './end-run.ts'

export interface Cancel {
  exitReason: ExitReason
  /** Words of the person who cancelled. */
  reason: string | null
  world: World
  leaseMs: number
}

/**
 * Cancels a live run, in the caller's transaction. A run that no device executes, or whose device is out of reach, ends
 * at once (a device that returns is refused by its lease and ends the harness); else its device is told and reports
 * the ending. False when the run had ended already.
 */
export async function cancelRun(tx: Tx, run: RunRow, cancel: Cancel): Promise<boolean> {
  if (run.endedAt !== null) return false
  const { world } = cancel
  const now = world.now()
  if (run.leaseState === 'claimed' && (await isReachable(tx, run, cancel))) {
    const { exitReason, reason } = cancel
    await changeRun(tx, run.id, { type: 'cancel_asked', exitReason, reason, at: now })
    await publish(tx, { topic: 'run.cancel', key: run.id, at: now })
    return true
  }
  return finishRun(tx, run, {
    type: 'cancelled',
    exitReason: cancel.exitReason,
    errorMessage: cancel.reason,
    at: now,
    world,
  })
}

async function isReachable(tx: Tx, run: RunRow, cancel: Cancel): Promise<boolean> {
  if (run.device === null) return false
  const device = await findDeviceByPublicId(tx, run.device)
  return device !== null && livenessOf(device, cancel.world.now(), cancel.leaseMs) === 'connected'
}
