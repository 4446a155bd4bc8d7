import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { isAtLeast } from '../parts/version.ts'

/** The oldest version whose help, as others published it, has the flag. One that does not know a flag exits at once. */
const firstWithPieces = '2026.1.23'

/**
 * `cursor-agent acp` asks before it acts; print mode does not. Cursor does not promise that every tool is asked, so `strict`
 * cannot hold. In print mode everything is allowed to it, as the agent's settings say; the prompt goes to standard input.
 */
export function cursorLaunch(spec: RunSpec, { cwd, version }: LaunchFacts): HarnessLaunch {
  const { permissions, agent, model, resumeSessionId } = spec
  if (permissions.defaultMode === 'strict') {
    throw new HarnessLaunchError(
      `Cursor does not promise to ask before every tool, so the mode strict cannot hold for ${agent.handle}. Choose another with: ` +
        `svc agent config set ${agent.handle} --mode ask`,
    )
  }
  const chosen = model === null ? [] : ['--model', model]
  const resumed = resumeSessionId === null ? [] : ['--resume', resumeSessionId]
  const partial = isAtLeast(version, firstWithPieces) ? ['--stream-partial-output'] : []
  const print = [
    '-p',
    '--output-format',
    'stream-json',
    ...partial,
    '--workspace',
    cwd,
    '--force',
    '--trust',
    '--approve-mcps',
  ]
  return {
    file: 'cursor-agent',
    args: hasCallChecks(spec) ? [...chosen, 'acp'] : [...print, ...chosen, ...resumed],
    env: {},
    io: 'pipes',
    files: [],
  }
}
