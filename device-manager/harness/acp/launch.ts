import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { ownProgram } from '../command/launch.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'

/** Launches the agent's command over pipes. The protocol does not promise that every tool is asked, so `strict` cannot hold. */
export function acpLaunch(spec: RunSpec, { loginShell }: LaunchFacts): HarnessLaunch {
  if (spec.permissions.defaultMode === 'strict') {
    throw new HarnessLaunchError(
      `The agent ${spec.agent.handle} runs a program by ACP, which does not promise to ask before every tool, so the mode strict ` +
        `cannot hold. Choose another with: svc agent config set ${spec.agent.handle} --mode ask`,
    )
  }
  return { ...ownProgram(spec, loginShell), env: {}, io: 'pipes', files: [] }
}
