import type { PersonUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { linkLimits } from '../../../../shared/device/limits.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRuns } from '../../../run/endings/cancel-runs.ts'
import { pauseAutomationsOf } from '../../automations/store.ts'
import { forgetConnectionsOf } from '../../connections/steps/change.ts'
import { removeDevice } from '../../devices/steps/remove.ts'
import { listDevicesOfUser } from '../../devices/store.ts'
import { countLiveCausedBy } from '../../runs/live-store.ts'
import { requestWorkflowCancel } from '../../workflows/cancel.ts'
import { listOpenWorkflowRunsCausedBy } from '../../workflows/run-store.ts'

/** A person whose runs and automations end. */
export interface CausedBy {
  personUuid: PersonUuid
  /** Left out: all workspaces. */
  workspaceId?: WorkspaceUuid
}

/**
 * Ends the runs of a person who leaves, whose tokens would work until their end, and the workflow runs on their account, whose
 * further steps no device would take. Pauses the automations for which the person is responsible; somebody else may take
 * those over by resuming them.
 */
export async function endCauses(
  db: Tx,
  of: CausedBy,
  world: World,
): Promise<{ runs: number; workflowRuns: number; automations: number }> {
  const workflowRuns = await cancelWorkflowsOf(db, of, world.now())
  const reason = 'The person who caused this run has left the workspace.'
  const runs = {
    subject: 'person',
    subjectId: of.personUuid,
    extent: 'live',
    exitReason: 'interrupted',
    reason,
  } as const
  const live = await countLiveCausedBy(db, of)
  for (const workspaceId of live.keys())
    await cancelRuns(db, { ...runs, workspaceId }, { world, leaseMs: linkLimits.leaseMs })
  const count = [...live.values()].reduce((sum, one) => sum + one, 0)
  return { runs: count, workflowRuns, automations: await pauseAutomationsOf(db, of, world.now()) }
}

/** Ends all that goes on in the name of a member who leaves: their devices, runs and automations, and what they are connected to. */
export async function endWorkOf(tx: Tx, member: Required<CausedBy>, world: World): Promise<void> {
  for (const device of await listDevicesOfUser(tx, member.workspaceId, member.personUuid))
    await removeDevice(tx, device, world)
  await endCauses(tx, member, world)
  await forgetConnectionsOf(tx, member, world.now())
}

async function cancelWorkflowsOf(db: Db, of: CausedBy, at: number): Promise<number> {
  const open = await listOpenWorkflowRunsCausedBy(db, of)
  for (const run of open) await requestWorkflowCancel(db, run, at)
  return open.length
}
