import { type HarnessName, harnessNames, harnesses } from '../../shared/runs/harnesses.ts'
import type { HarnessAdapter, HarnessProbe, HarnessReadiness } from './adapter.ts'
import { adapterOf } from './registry.ts'

/**
 * Harnesses that svc knows by name but has no adapter for. They are listed with what is installed, and with a message
 * that says why no run can use them.
 */
export const detectOnly: readonly Pick<HarnessAdapter, 'name' | 'detect'>[] = harnessNames
  .filter((name) => adapterOf(name) === null)
  .map((name) => ({ name, detect: (probe) => detectProgram(probe, name, harnesses[name].programs) }))

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
