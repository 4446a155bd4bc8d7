import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Sandbox } from '../../../../shared/api/sandboxes.ts'
import type { SandboxRow } from '../store.ts'

export function presentSandbox(row: SandboxRow): Sandbox {
  return {
    id: row.id,
    runId: row.runId,
    size: row.size,
    image: row.image,
    state: row.removedAt === null ? row.state : 'removed',
    trouble: row.trouble,
    createdAt: toTimestamp(row.createdAt),
    stateAt: toTimestamp(row.stateAt),
    removedAt: toTimestamp(row.removedAt),
  }
}
