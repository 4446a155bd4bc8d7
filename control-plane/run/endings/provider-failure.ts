import { harnesses, providerOf } from '../../../shared/runs/harnesses.ts'
import type { Db } from '../../db/open.ts'
import { circuitAfter, streakMs, type Circuit } from '../../resources/quotas/rules.ts'
import { findCircuit, replaceCircuit } from '../../resources/quotas/store.ts'
import { listEnded } from '../../resources/runs/ended-store.ts'
import type { RunRow } from '../../resources/runs/store.ts'

/** A run whose provider failed may have begun long before. */
const lookBackMs = 24 * 3_600_000 + streakMs

/**
 * Judges a failure of a run's provider, in the transaction of its ending. Returns the breaker where this failure opened it,
 * else null.
 */
export async function openedBy(db: Db, run: RunRow, at: number): Promise<Circuit | null> {
  const { workspaceId, device } = run
  // Nobody knows which provider a program of the agent's own depends on, and two such programs need not share one.
  if (device === null || harnesses[run.harness].runsOwnCommand) return null
  const provider = providerOf(run.harness, run.modelId)
  const before = await findCircuit(db, { workspaceId, device, provider })
  const ended = await listEnded(db, { workspaceId, since: at - lookBackMs })
  const circuit = circuitAfter({ device, provider, at }, { before, ended })
  if (circuit !== null) await replaceCircuit(db, { ...circuit, workspaceId })
  return circuit
}
