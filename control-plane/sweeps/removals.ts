import { idFrom, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction } from '../db/transaction.ts'
import { cancellationJob, goOnCancelling } from '../run/endings/cancel-runs.ts'
import { finishRun } from '../run/endings/end-run.ts'
import { conversationRemovalJob } from '../resources/conversations/store.ts'
import { revokeConnection } from '../resources/devices/steps/remove.ts'
import { listDevicesOfWorkspace } from '../resources/devices/store.ts'
import { listCancellations } from '../resources/runs/cancellation-store.ts'
import { listLiveOfWorkspace } from '../resources/runs/live-store.ts'
import { goOnUnassigning, unassignmentJob } from '../resources/tasks/steps/assign.ts'
import { listUnassignments } from '../resources/tasks/unassignment-store.ts'
import { removalJob } from '../resources/workspaces/rules.ts'
import { claimRemoved } from '../resources/workspaces/store.ts'
import type { BackgroundJob } from './background-jobs.ts'
import { listRemoved, removeSomeOfConversation, removeSomeOfWorkspace } from './removal-store.ts'

/** The sweep comes back for more. */
const perRound = 100
/** Ending a run takes some milliseconds, in which a SQLite database does nothing else. */
const runsAtOnce = 8
const devicesAtOnce = 50

/** Returns the jobs that go on in batches after the requests that asked for them. */
export function removalJobs({ world, leaseMs }: { world: World; leaseMs: number }): BackgroundJob[] {
  return [
    {
      name: removalJob,
      list: (root) => listRemoved(root, 'workspaces', perRound),
      runBatch: (root, id) => removeWorkspaceBatch(root, idFrom(id), world),
    },
    {
      name: conversationRemovalJob,
      list: (root) => listRemoved(root, 'conversations', perRound),
      runBatch: (root, id) =>
        inTransaction(root, (tx) => removeSomeOfConversation(tx, id, world), { below: 'rows of what was removed' }),
    },
    {
      name: cancellationJob,
      list: async (root) => (await listCancellations(root, perRound)).map(({ id }) => id),
      runBatch: (root, id) => inTransaction(root, (tx) => goOnCancelling(tx, id, { world, leaseMs })),
    },
    {
      name: unassignmentJob,
      list: (root) => listUnassignments(root, perRound),
      runBatch: (root, id) => inTransaction(root, (tx) => goOnUnassigning(tx, idFrom(id), world)),
    },
  ]
}

/** Removes a batch: first all that is live ends, then the rows go. */
async function removeWorkspaceBatch(root: Knex, id: WorkspaceUuid, world: World): Promise<'more' | 'done' | 'taken'> {
  const isLive =
    (await listDevicesOfWorkspace(root, id)).length > 0 || (await listLiveOfWorkspace(root, id, 1)).length > 0
  if (isLive) return inTransaction(root, (tx) => endSome(tx, id, world), { locks: [id] })
  return inTransaction(root, (tx) => removeSomeOfWorkspace(tx, id, world), { below: 'rows of what was removed' })
}

async function endSome(tx: Tx, id: WorkspaceUuid, world: World): Promise<'more' | 'taken'> {
  if (!(await claimRemoved(tx, id))) return 'taken'
  const at = world.now()
  const devices = await listDevicesOfWorkspace(tx, id)
  for (const device of devices.slice(0, devicesAtOnce)) await revokeConnection(tx, device, at)
  const ending = {
    type: 'workspace_removed',
    exitReason: 'agent_deleted',
    errorMessage: 'The workspace of this run was deleted.',
  } as const
  for (const run of await listLiveOfWorkspace(tx, id, runsAtOnce)) await finishRun(tx, run, { ...ending, at, world })
  return 'more'
}
