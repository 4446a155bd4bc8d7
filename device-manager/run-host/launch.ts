import { join, relative, isAbsolute, dirname } from 'node:path'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { World } from '../../shared/lib/world.ts'
import type { Child, ChildLaunch } from './child.ts'
import { harnessEnv } from './environment.ts'
import { launchOnPipes } from './pipes.ts'
import type { LaunchPlan, Prepared } from './preparation.ts'
import { findProgram } from './program.ts'
import type { HostRequest } from './protocol.ts'
import { launchInPty } from './pty.ts'

export type StartRequest = Extract<HostRequest, { type: 'start' }>

/** What was looked up longer ago than this is looked up again. */
const freshMs = 1_000

/** Launches it. Throws HarnessLaunchError when the program or the folder is not what it should be. */
export function launchHarness(
  { prepared, plan, start, world }: { prepared: Prepared; plan: LaunchPlan; start: StartRequest; world: World },
  on: Pick<ChildLaunch, 'onOutput' | 'onStderr'>,
): Child {
  const { assignment, cwd, paths } = prepared
  const env = harnessEnv({
    known: plan.env,
    secrets: start.secrets,
    runId: assignment.spec.runId,
    agentId: assignment.spec.agent.id,
    token: start.token,
    apiUrl: start.apiUrl,
    svcBinDir: assignment.svcBinDir,
  })
  const path = env['PATH'] ?? ''
  const { program } = plan
  const isKnown = program !== null && program.path === path && world.monotonic() - program.at <= freshMs
  const file = isKnown ? program.file : findProgram(plan.launch.file, { path, cwd })
  for (const { path, content } of plan.launch.files) writeHarnessFile(paths.harness, path, content)
  const launch = { file, args: plan.launch.args, env, cwd, ...on }
  return plan.launch.io === 'pty' ? launchInPty(launch) : launchOnPipes(launch)
}

function writeHarnessFile(runDir: string, path: string, content: string): void {
  const inside = relative(runDir, path)
  if (inside.startsWith('..') || isAbsolute(inside)) throw new Error(`${path} is outside of the run's folder`)
  mkdirSync(dirname(join(runDir, inside)), { recursive: true, mode: 0o700 })
  writeFileSync(path, content, { mode: 0o600 })
}
