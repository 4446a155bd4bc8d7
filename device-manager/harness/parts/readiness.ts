import type { HarnessReadiness, ProbeResult } from '../adapter.ts'
import { lowestVersions } from './lowest-versions.ts'
import { isSurelyOlder, versionIn } from './version.ts'

export const notInstalled = (message: string): HarnessReadiness => ({
  installed: false,
  version: null,
  signedIn: null,
  message,
})

/** What a look at a program that is there has found; the hint is for whoever is signed out. */
export function installed(
  program: string,
  versionRun: ProbeResult,
  { signedIn, signInHint, probeMs }: { signedIn: boolean | null; signInHint: string; probeMs: number },
): HarnessReadiness {
  const found = { installed: true, version: versionIn(versionRun.stdout), signedIn }
  if (versionRun.timedOut)
    return { ...found, message: `${program} --version did not answer within ${probeMs / 1000} s.` }
  const lowest = lowestVersions.get(program)
  if (lowest !== undefined && versionRun.exitCode === 0 && isSurelyOlder(versionRun.stdout, lowest.version)) {
    const message = `${program} ${found.version} is too old: svc needs ${lowest.version} or newer; update it with: ${lowest.update}`
    return { ...found, tooOld: true, message }
  }
  if (found.version === null) return { ...found, message: `${program} --version did not name a version.` }
  return { ...found, message: signedIn === false ? signInHint : null }
}
