import type { RunId } from '../../shared/lib/ids.ts'
import { computeChangeSet } from '../change-set/diff.ts'
import { type ChangeSetResult, withSharers } from '../../shared/device/change-set.ts'
import type { World } from '../../shared/lib/world.ts'
import { endTree, type EscalationSteps } from '../process/kill.ts'
import { findProcessesOfRun } from '../process/orphans.ts'
import type { ProcessIdentity } from '../process/identity.ts'
import type { Wall } from '../wall/wall.ts'
import type { Child, LeaderExit } from './launch/child.ts'
import { messageOf, type HostLog } from '../log/host-log.ts'
import type { Prepared } from './preparation.ts'

/**
 * A child in the background may hold the output open after the leader's exit: it delays the ending by 5 s at most. It has
 * the first part of them to finish what it writes, and after SIGTERM the second; a second is for the searches.
 */
const backgroundMs = 2_000
const backgroundTerminateMs = 2_000
/** A change-set that takes longer is given up; the run's ending does not wait for it. */
export const changeSetMs = 60_000

export interface Tree {
  runId: RunId
  child: Child
  leader: ProcessIdentity
  cgroup: string | null
  wall: Wall | null
  world: World
  log: HostLog
}

/** Interrupts, then terminates, then kills. A harness that has given its result is not interrupted: it is past its work. */
export async function stopTree(tree: Tree, skipTo?: 'terminate'): Promise<void> {
  await end(tree, { ...(skipTo && { skipTo }) })
}

/**
 * Waits from the leader's exit to the last byte: processes in the background have a moment to finish what they write, then all that
 * is left of the tree is ended. `stopping` is an escalation under way, which is waited for.
 */
export async function drain(tree: Tree, stopping: () => Promise<void> | null): Promise<LeaderExit> {
  const { child, world } = tree
  await child.leaderGone
  await stopping()
  if (!(await withTimeout(world, child.closed, 0))) await giveTime(tree)
  await end(tree, { skipTo: 'terminate', leaderExitSeen: true, steps: { terminateMs: backgroundTerminateMs } })
  // A process that dropped its mark, its session and its parent ends with the namespace.
  await tree.wall?.end()
  // Whoever still holds the output now cannot be found or killed.
  if (!(await withTimeout(world, child.closed, 2_000))) child.abandon()
  return child.closed
}

/** Ends early when nothing of the run lives: then the output is held by nobody who would write to it. */
async function giveTime(tree: Tree): Promise<void> {
  const { child, world, runId, leader, cgroup } = tree
  const deadline = world.monotonic() + backgroundMs
  while (world.monotonic() < deadline) {
    if (await withTimeout(world, child.closed, 250)) return
    const { startTime: since } = leader
    const search = { runId, roots: [leader], since, cgroup, exclude: [process.pid], ownGroups: [leader.pid] }
    const found = await findProcessesOfRun(search).catch(() => null)
    if (found?.own.length === 0) return
  }
}

async function end(
  tree: Tree,
  options: { skipTo?: 'terminate'; steps?: Partial<EscalationSteps>; leaderExitSeen?: boolean },
) {
  const { runId, leader, cgroup, world, log } = tree
  try {
    const { survivors } = await endTree({
      runId,
      leader,
      pgid: leader.pid,
      cgroup,
      exclude: [process.pid],
      world,
      ...options,
    })
    if (survivors.length > 0) log('processes_survived', { runId, pids: survivors.map(({ pid }) => pid) })
  } catch (error) {
    log('end_tree_failed', { runId, error: messageOf(error) })
  }
}

/** Never throws, never takes longer than its limit. */
export async function changeSetOf({ assignment, base, sharedWith }: Prepared, world: World): Promise<ChangeSetResult> {
  const { spec } = assignment
  if (!base.ok || !spec.folder) {
    return base.ok ? { ok: false, code: 'source_unknown', message: 'The run has no folder.' } : base
  }
  const computed = computeChangeSet({ base: base.base, folder: spec.folder.rootPath, runId: spec.runId, world }).catch(
    (error: unknown): ChangeSetResult => ({
      ok: false,
      code: 'diff_unavailable',
      message: messageOf(error).slice(0, 1000),
    }),
  )
  const late: ChangeSetResult = {
    ok: false,
    code: 'diff_unavailable',
    message: `Comparing the folder with its state at the start took longer than ${changeSetMs / 1000} seconds.`,
  }
  return withSharers((await withTimeout(world, computed, changeSetMs)) ?? late, sharedWith)
}

/** Resolves with the value, or with null when it is not there in time. */
export async function withTimeout<Value>(world: World, value: Promise<Value>, ms: number): Promise<Value | null> {
  const timeout = new AbortController()
  const late = world.sleep(ms, timeout.signal).then(
    () => null,
    () => null,
  )
  try {
    return await Promise.race([value, late])
  } finally {
    timeout.abort()
  }
}
