import type { SandboxId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { sandboxId } from '../../../../shared/api/ids.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { sandboxRoutes } from '../../../../shared/api/sandboxes.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { implement, type ImplementedRoute } from '../../../http/implement.ts'
import { cancelRun } from '../../../run/endings/cancel-run.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findRun } from '../../runs/store.ts'
import { presentSandbox } from '../own/present.ts'
import { findSandbox, listSandboxes, type SandboxRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'cloud' | 'leaseMs'>

export function sandboxHandlers({ cloud, leaseMs }: Dependencies): ImplementedRoute[] {
  return implement(sandboxRoutes, {
    async list({ db, caller, query }) {
      const { limit, removed } = query
      const before = beforeOf(query, timeAndId(sandboxId))
      const rows = await listSandboxes(db, { workspaceId: caller.workspaceId, withRemoved: removed, limit, ...before })
      return pageByTime(rows, limit, presentSandbox)
    },

    async logs({ db, caller, params, query }) {
      const row = await sandboxThere(db, caller, params.sandboxId)
      // A sandbox without a folder was never made, so nothing has written a log.
      if (row.folder === null) return { sandboxId: row.id, log: '' }
      const log = cloud === null ? null : await cloud.logOf(row, query.lines)
      return log === null ? fail('sandbox_engine_unavailable') : { sandboxId: row.id, log }
    },

    async stop({ db, caller, params, world }) {
      const row = await sandboxThere(db, caller, params.sandboxId)
      const run = await findRun(db, row.runId)
      const reason = 'A workspace admin stopped the sandbox.'
      if (run !== null) await cancelRun(db, run, { exitReason: 'interrupted', reason, world, leaseMs })
      return presentSandbox(row)
    },
  })
}

async function sandboxThere(db: Db, { workspaceId }: Caller, id: SandboxId): Promise<SandboxRow> {
  const row = await findSandbox(db, id)
  if (row === null || row.workspaceId !== workspaceId) return fail('sandbox_not_found')
  return row.removedAt === null ? row : fail('sandbox_gone')
}
