import { statusOfExitReason, type ExitReason } from '../../../../shared/runs/exit-reasons.ts'
import type { RunEffect } from '../../../run/effects.ts'
import { isAsking } from '../../approvals/rules.ts'
import { recordEvent } from '../../webhooks/event-store.ts'

/** Records for webhooks how a run ended; one that stopped to ask waits. */
export async function recordEndedEvent(...[tx, run, { world, exitReason }]: Parameters<RunEffect>): Promise<void> {
  if (exitReason === null) return
  await recordEvent(tx, { type: typeOf(exitReason), workspaceId: run.workspaceId, subjectId: run.id, world })
}

const typeOf = (reason: ExitReason) =>
  isAsking(reason) ? ('run.waiting' as const) : (`run.${statusOfExitReason(reason)}` as const)
