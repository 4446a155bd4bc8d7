import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import type { ServerLeftOut } from '../../shared/runs/filled-servers.ts'
import type { McpServers } from '../../shared/runs/mcp-servers.ts'
import { makeRunCgroup } from '../process/cgroup.ts'
import { identityOf, type ProcessIdentity } from '../process/identity.ts'
import { launchHarness, withServers, type Launched, type StartRequest } from './launch/launch.ts'
import { endFirst } from './memory.ts'
import type { LaunchPlan, Prepared } from './preparation.ts'

export interface LaunchParts {
  world: World
  prepared: Prepared
  plan: LaunchPlan
  start: StartRequest
  /** Called within the launch, before all that the launch does not need. */
  onLaunched(harness: ProcessIdentity): void
}

/** A harness that was launched, and what its launch tells later. */
export interface LaunchedRun {
  child: Launched
  harness: ProcessIdentity
  cgroup: string | null
  servers: McpServers
  leftOut: readonly ServerLeftOut[]
}

/**
 * Launches the harness of a run, before anything else is set up, so that nothing delays it. Its output comes in a later turn of the
 * event loop. Throws HarnessLaunchError.
 */
export function launchFirst(parts: LaunchParts, on: Parameters<typeof launchHarness>[1]): LaunchedRun {
  const { prepared, start, world } = parts
  const { plan, servers, leftOut } = withServers(parts)
  const child = launchHarness({ prepared, plan, start, world }, on)
  prepared.timeline.mark('launched')
  // A harness that is gone already has no start time; its group is still known by its number.
  const harness = launchedAs(child.pid)
  parts.onLaunched(harness)
  endFirst(child.pid)
  const cgroup = makeRunCgroup(prepared.assignment.spec.runId)
  prepared.cgroup = cgroup
  if (cgroup !== null) void enterCgroup(cgroup, child.pid)
  return { child, harness, cgroup, servers, leftOut }
}

/** Identifies a harness that runs. A start time that cannot be read now (no file is left) must not look like a launch that failed. */
function launchedAs(pid: number): ProcessIdentity {
  try {
    return identityOf(pid) ?? { pid, startTime: '' }
  } catch {
    return { pid, startTime: '' }
  }
}

/**
 * Moves the process into its cgroup, for which nobody waits: the kernel takes ten milliseconds and more. Processes that the harness
 * starts before that are found by their mark and their descent.
 */
async function enterCgroup(cgroup: string, pid: number): Promise<void> {
  await writeFile(join(cgroup, 'cgroup.procs'), String(pid)).catch(() => {})
}
