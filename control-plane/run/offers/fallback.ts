import type { RunId } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { findDetails, replaceSpec } from '../../resources/runs/details-store.ts'
import { changeRun } from '../change-store.ts'

/** The run goes on its fallback harness from now on; nothing happens to one that has none. */
export async function takeFallback(db: Db, runId: RunId): Promise<void> {
  const spec = (await findDetails(db, runId))?.fallbackSpec ?? null
  if (spec === null) return
  const { reasoningEffort } = spec
  if (await changeRun(db, runId, { type: 'fallback_taken', reasoningEffort })) await replaceSpec(db, runId, spec)
}
