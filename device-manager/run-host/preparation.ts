import { rmSync } from 'node:fs'
import { releaseBase } from '../change-set/diff.ts'
import { takeBase } from '../change-set/snapshot.ts'
import type { World } from '../../shared/lib/world.ts'
import type { HarnessAdapter, HarnessLaunch } from '../harness/adapter.ts'
import { HarnessLaunchError } from '../harness/adapter-errors.ts'
import { adapterOf, noAdapterMessage } from '../harness/registry.ts'
import { makeRunCgroup, removeRunCgroup } from '../process/cgroup.ts'
import { messageOf } from './log.ts'
import type { HostRequest } from './protocol.ts'
import { makePrivateFolder, runPaths, writePrivateFile, type RunPaths } from './record.ts'

export type Assignment = Extract<HostRequest, { type: 'assign' }>
export type BaseResult = Awaited<ReturnType<typeof takeBase>>

export interface LaunchPlan {
  adapter: HarnessAdapter
  launch: HarnessLaunch
}

/** All that is ready before the run may start. */
export interface Prepared {
  assignment: Assignment
  paths: RunPaths
  cwd: string
  base: BaseResult
  plan: LaunchPlan | { problem: unknown }
  cgroup: string | null
}

/**
 * The run's folders and the base of its change-set. Nothing that is wrong with the repository or the folder fails here:
 * it becomes the change-set's answer, and the launch tells of a folder that cannot be entered.
 */
export async function prepare(stateDir: string, assignment: Assignment, world: World): Promise<Prepared> {
  const { spec } = assignment
  const paths = runPaths(stateDir, spec.runId)
  makePrivateFolder(paths.root)
  // What an earlier host of this run left there (a lease that was lost before its start).
  rmSync(paths.harness, { recursive: true, force: true })
  makePrivateFolder(paths.harness)
  const base = await baseOf(assignment, world)
  writePrivateFile(
    paths.base,
    `${JSON.stringify({ runId: spec.runId, fence: assignment.fence, folder: spec.folder?.rootPath ?? null, base })}\n`,
  )
  const cwd = spec.folder?.rootPath ?? assignment.homeDir
  return { assignment, paths, cwd, base, plan: planOf(assignment, paths, cwd), cgroup: makeRunCgroup(spec.runId) }
}

/** What to launch, from the spec alone; a spec that does not say enough is a problem for the launch to tell. */
function planOf({ spec, env, loginShell, harnessVersion }: Assignment, paths: RunPaths, cwd: string): Prepared['plan'] {
  try {
    const adapter = adapterOf(spec.harness)
    if (!adapter) throw new HarnessLaunchError(noAdapterMessage(spec.harness))
    const isRoot = process.getuid?.() === 0
    const facts = { env, cwd, runDir: paths.harness, isRoot, loginShell, version: harnessVersion }
    return { adapter, launch: adapter.command(spec, facts) }
  } catch (problem) {
    return { problem }
  }
}

async function baseOf({ spec }: Assignment, world: World): Promise<BaseResult> {
  if (!spec.folder) {
    return { ok: false, code: 'source_unknown', message: 'The run has no folder, so there is no change-set.' }
  }
  try {
    return await takeBase({ folder: spec.folder.rootPath, runId: spec.runId, world })
  } catch (error) {
    return { ok: false, code: 'repo_unavailable', message: messageOf(error).slice(0, 1000) }
  }
}

/** The run is over, or was never wanted: nothing of it stays but what is in the spool. */
export async function cleanUp(prepared: Prepared): Promise<void> {
  if (prepared.base.ok) await releaseBase(prepared.base.base).catch(() => {})
  if (prepared.cgroup !== null) removeRunCgroup(prepared.cgroup)
  rmSync(prepared.paths.root, { recursive: true, force: true })
}
