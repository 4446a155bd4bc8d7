import type { AgentRef, RunId } from '../../../shared/lib/ids.ts'
import { agentVariable } from '../../../shared/runs/run-variables.ts'
import { markName } from '../../process/orphans.ts'
import { unattendedEnv } from '../../process/unattended-env.ts'

export interface HarnessEnvironment {
  /** The variables that `knownEnv` returned. */
  known: Readonly<Record<string, string>>
  secrets: Readonly<Record<string, string>>
  runId: RunId
  agentId: AgentRef
  token: string
  apiUrl: string
  svcBinDir: string | null
}

/** Returns the variables that are known before the run's start: those of the login shell that are on the allow-list, those that keep programs from asking, and those of the adapter. */
export function knownEnv(
  base: Readonly<Record<string, string>>,
  ofHarness: Readonly<Record<string, string>>,
): Record<string, string> {
  return { ...foreign(base), ...unattendedEnv, ...passable(Object.entries(ofHarness)) }
}

/** Neither the login shell nor a secret can set a variable of ours. */
const foreign = (env: Readonly<Record<string, string>>) =>
  passable(Object.entries(env).filter(([name]) => !name.startsWith('SVC_')))

/** A zero byte would end the variable and begin another one. */
const passable = (entries: readonly [string, string][]) =>
  Object.fromEntries(entries.filter(([name, value]) => /^[^=\0]+$/.test(name) && !value.includes('\0')))

/** Returns the harness's PATH; `path`: that of its environment. */
export function pathOf(path: string | undefined, svcBinDir: string | null): string {
  const own = path ?? '/usr/local/bin:/usr/bin:/bin'
  return svcBinDir === null ? own : `${svcBinDir}:${own}`
}

/**
 * The whole environment of a harness. Nothing of the run host's own environment is in it, so the device token never can
 * be.
 */
export function harnessEnv(parts: HarnessEnvironment): Record<string, string> {
  const env: Record<string, string> = { ...parts.known, ...foreign(parts.secrets) }
  return {
    ...env,
    PATH: pathOf(env['PATH'], parts.svcBinDir),
    SVC_API_URL: parts.apiUrl,
    SVC_TOKEN: parts.token,
    [agentVariable]: parts.agentId,
    [markName]: parts.runId,
  }
}
