import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { insertEvidence, measureEvidence } from '../resources/runs/log-store.ts'
import type { RunRow } from '../resources/runs/store.ts'
import type { IngestItem } from './ingest-item.ts'

/** A device that comes back late sends everything it spooled; the beginning tells enough. */
const evidenceLimits = {
  run: { count: 200, bytes: 32 * 1024 * 1024 },
  device: { count: 2_000, bytes: 256 * 1024 * 1024 },
} as const

/**
 * Keeps a bounded amount for each run and each device. Only the device that the run was offered to or that holds it is heard: a run
 * that was claimed once is never offered again, so no other device can have anything of it.
 */
export async function keepEvidence(
  tx: Tx,
  run: RunRow,
  given: {
    item: IngestItem
    header: { fence: number; firstSeq: number | null; lastSeq: number | null }
    body: Buffer
    reason: string
    world: World
  },
): Promise<void> {
  const { fence, firstSeq, lastSeq } = given.header
  const { item, reason, body, world } = given
  if (run.device !== item.device) return
  const hasRoom = async (of: Parameters<typeof measureEvidence>[1], limit: { count: number; bytes: number }) => {
    const kept = await measureEvidence(tx, of)
    return kept.count < limit.count && kept.bytes + body.length <= limit.bytes
  }
  if (!(await hasRoom({ runId: run.id }, evidenceLimits.run))) return
  if (!(await hasRoom({ device: item.device }, evidenceLimits.device))) return
  const [id, receivedAt] = [world.uuid(), world.now()]
  const about = { runId: run.id, fence, firstSeq, lastSeq, device: item.device }
  await insertEvidence(tx, { id, ...about, reason, body, receivedAt })
}
