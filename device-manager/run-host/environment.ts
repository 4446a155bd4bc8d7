import { markName } from '../process/orphans.ts'

export interface HarnessEnvironment {
  /** The person's login shell's, cut to the allow-list. */
  base: Readonly<Record<string, string>>
  /** What the adapter adds. */
  ofHarness: Readonly<Record<string, string>>
  secrets: Readonly<Record<string, string>>
  runId: string
  agentId: string
  token: string
  apiUrl: string
  svcBinDir: string | null
}

/**
 * The whole environment of a harness. Nothing of the run host's own environment is in it, so the device token never can
 * be; and neither the login shell nor a secret can set a variable of ours.
 */
export function harnessEnv(parts: HarnessEnvironment): Record<string, string> {
  const env: Record<string, string> = {}
  for (const source of [parts.base, parts.ofHarness, parts.secrets]) {
    for (const [name, value] of Object.entries(source)) {
      const isOurs = name.startsWith('SVC_') && source !== parts.ofHarness
      // A zero byte would end the variable and begin another one.
      if (isOurs || !/^[^=\0]+$/.test(name) || value.includes('\0')) continue
      env[name] = value
    }
  }
  const path = env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'
  return {
    ...env,
    PATH: parts.svcBinDir === null ? path : `${parts.svcBinDir}:${path}`,
    SVC_API_URL: parts.apiUrl,
    SVC_TOKEN: parts.token,
    SVC_AGENT_ID: parts.agentId,
    [markName]: parts.runId,
  }
}
