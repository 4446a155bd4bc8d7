import type { HarnessName } from '../../shared/runs/spec.ts'
import type { HarnessAdapter, HarnessProbe, HarnessReadiness } from './adapter.ts'

/**
 * Harnesses that svc knows by name but has no adapter for. They are listed with what is installed, and with a message
 * that says why no run can use them.
 */
export const detectOnly: readonly Pick<HarnessAdapter, 'name' | 'detect'>[] = [
  { name: 'codex', detect: (probe) => detectProgram(probe, 'codex', ['codex']) },
  { name: 'opencode', detect: (probe) => detectProgram(probe, 'opencode', ['opencode']) },
  // The program's newer name, `agent`, is too common to be taken for Cursor's.
  { name: 'cursor', detect: (probe) => detectProgram(probe, 'cursor', ['cursor-agent']) },
]

const probeMs = 5_000

async function detectProgram(
  probe: HarnessProbe,
  name: HarnessName,
  programs: readonly string[],
): Promise<HarnessReadiness> {
  for (const program of programs) {
    const file = await probe.which(program)
    if (file === null) continue
    const { stdout } = await probe.run(file, ['--version'], probeMs)
    const version = /\b\d[\w.+-]{2,60}/.exec(stdout)?.[0] ?? null
    const message = `${program} is installed, but this version of svc cannot launch it.`
    return { installed: true, version, signedIn: null, message }
  }
  const message = `${programs.join(' or ')} was not found; this version of svc cannot launch ${name} anyway.`
  return { installed: false, version: null, signedIn: null, message }
}
