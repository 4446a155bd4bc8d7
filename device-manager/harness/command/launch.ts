import { basename, join } from 'node:path'
import { commandVariables } from '../../../shared/runs/run-variables.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'
import { unattendedScript } from '../../process/unattended-env.ts'
import { cutText } from '../parts/utf8.ts'

/** The system takes at most 128 KiB in one variable; half of that leaves room for the others. */
export const maxPromptVariableBytes = 64 * 1024

/** Launches what the agent's config says, in a pty: a string through the login shell, an argv array as it is. */
export function commandLaunch(spec: RunSpec, launch: LaunchFacts): HarnessLaunch {
  const promptFile = join(launch.runDir, 'prompt')
  const instructionsFile = join(launch.runDir, 'instructions.md')
  return {
    ...ownProgram(spec, launch.loginShell),
    env: {
      // A variable cannot hold a zero byte; the file has the prompt as it is.
      [commandVariables.prompt]: cutText(spec.prompt.replaceAll('\0', '\u{fffd}'), maxPromptVariableBytes).text,
      [commandVariables.promptFile]: promptFile,
      [commandVariables.instructionsFile]: instructionsFile,
    },
    io: 'pty',
    files: [
      { path: promptFile, content: spec.prompt },
      { path: instructionsFile, content: spec.agentMd },
    ],
  }
}

export function ownProgram(spec: RunSpec, loginShell: string): { file: string; args: readonly string[] } {
  const { command } = spec
  const isEmpty = command === null || (typeof command === 'string' ? command.trim() === '' : command[0] === '')
  if (isEmpty) {
    throw new HarnessLaunchError(
      `The agent ${spec.agent.handle} uses the command harness but has no command. ` +
        `Set one with: svc agent config set ${spec.agent.handle} --command '<command line>'`,
    )
  }
  if (typeof command === 'string') return throughShell(command, loginShell)
  const [file, ...args] = command as [string, ...string[]]
  return { file, args }
}

/**
 * The person's own shell, without reading its profile again: the environment was taken from a login shell before
 * (docs/adr/0004), asking it twice costs a tenth of a second and more, and system profiles set PATH anew, which would
 * hide the `svc` that the run host puts first. It is not interactive, so it does no job control and stays in the process
 * group that signals go to.
 */
function throughShell(script: string, loginShell: string): { file: string; args: readonly string[] } {
  const shell = loginShell === '' || refusingShells.has(basename(loginShell)) ? '/bin/sh' : loginShell
  return { file: shell, args: ['-c', unattendedScript(script, shell)] }
}

const refusingShells: ReadonlySet<string> = new Set(['nologin', 'false', 'true'])
