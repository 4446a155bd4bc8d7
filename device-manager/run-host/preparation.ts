import { existsSync, rmSync } from 'node:fs'
import { releaseBase } from '../change-set/diff.ts'
import { takeBase } from '../change-set/snapshot.ts'
import type { World } from '../../shared/lib/world.ts'
import type { HarnessAdapter, HarnessLaunch } from '../harness/adapter.ts'
import { HarnessLaunchError } from '../harness/adapter-errors.ts'
import { adapterOf, noAdapterMessage } from '../harness/registry.ts'
import { removeRunCgroup } from '../process/cgroup.ts'
import { knownEnv, pathOf } from './environment.ts'
import { messageOf } from './log.ts'
import { findProgram } from './program.ts'
import type { HostRequest } from './protocol.ts'
import { makePrivateFolder, runPaths, writePrivateFile, type RunPaths } from './record.ts'

export type Assignment = Extract<HostRequest, { type: 'assign' }>
export type BaseResult = Awaited<ReturnType<typeof takeBase>>

export interface LaunchPlan {
  adapter: HarnessAdapter
  launch: HarnessLaunch
  /** All of the environment that is known before the start. */
  env: Record<string, string>
  /** Where the program was found with this PATH, and when; null: it was not found. */
  program: { file: string; path: string; at: number } | null
}

/** All that is ready before the run may start. */
export interface Prepared {
  assignment: Assignment
  paths: RunPaths
  cwd: string
  base: BaseResult
  plan: LaunchPlan | { problem: unknown }
  /** Made when the harness runs. */
  cgroup: string | null
}

/**
 * The base of the run's change-set, and what is to be launched. Nothing that is wrong with the repository or the folder
 * fails here: it becomes the change-set's answer, and the launch tells of a folder that cannot be entered. A folder for the
 * run is made when something is to be put into it: the run waits for all that is done here.
 */
export async function prepare(stateDir: string, assignment: Assignment, world: World): Promise<Prepared> {
  const { spec } = assignment
  const paths = runPaths(stateDir, spec.runId)
  // What an earlier host of this run left there (a lease that was lost before its start).
  if (existsSync(paths.root))
    for (const old of [paths.harness, paths.base]) rmSync(old, { recursive: true, force: true })
  const cwd = spec.folder?.rootPath ?? assignment.homeDir
  const taking = baseOf(assignment, world)
  // While git is at work.
  const plan = planOf(assignment, { paths, cwd, world })
  const base = await taking
  if (base.ok) {
    const { runId, folder } = spec
    makePrivateFolder(paths.root)
    writePrivateFile(
      paths.base,
      `${JSON.stringify({ runId, fence: assignment.fence, folder: folder?.rootPath ?? null, base })}\n`,
    )
  }
  return { assignment, paths, cwd, base, plan, cgroup: null }
}

/** What to launch, from the spec alone; a spec that does not say enough is a problem for the launch to tell. */
function planOf(
  { spec, env, loginShell, svcBinDir, harnessVersion }: Assignment,
  { paths, cwd, world }: { paths: RunPaths; cwd: string; world: World },
): Prepared['plan'] {
  try {
    const adapter = adapterOf(spec.harness)
    if (!adapter) throw new HarnessLaunchError(noAdapterMessage(spec.harness))
    const isRoot = process.getuid?.() === 0
    const facts = { env, cwd, runDir: paths.harness, isRoot, loginShell, version: harnessVersion }
    const launch = adapter.command(spec, facts)
    const known = knownEnv(env, launch.env)
    const path = pathOf(known['PATH'], svcBinDir)
    return { adapter, launch, env: known, program: lookUpProgram(launch.file, { path, cwd, world }) }
  } catch (problem) {
    return { problem }
  }
}

/** Looked up while nobody waits; the launch tells what is wrong with it. */
function lookUpProgram(
  name: string,
  { path, cwd, world }: { path: string; cwd: string; world: World },
): LaunchPlan['program'] {
  try {
    return { file: findProgram(name, { path, cwd }), path, at: world.monotonic() }
  } catch {
    return null
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
