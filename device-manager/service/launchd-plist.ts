import { build, parse } from 'plist'
import { z } from 'zod'
import { serviceLabel } from '../../shared/device/service-file.ts'
import { launchdKeys, plistOf } from '../../shared/lib/launchd-words.ts'
import { nodeFlags, restartSeconds, type ServiceDefinition, stopSeconds } from './definition.ts'
import type { InstalledService } from './systemd-unit.ts'

/** The launchd agent. Run hosts outlive the daemon (docs/adr/0007). */
export function plistText(definition: ServiceDefinition): string {
  const { node, main, homeDir, env, umask, outFile } = definition
  const keys = launchdKeys({
    label: serviceLabel,
    program: [node, ...nodeFlags, main, 'run'],
    env,
    homeDir,
    umask,
    outFile,
    restartSeconds: restartSeconds.launchd,
    stopSeconds,
    leavesPrograms: true,
  })
  return plistOf(build(keys))
}

const ofOurs = z.object({
  ProgramArguments: z.array(z.string()),
  EnvironmentVariables: z.object({ PATH: z.string(), SVC_STATE_DIR: z.string() }),
})

/** Reads what `plistText` wrote; null for what it did not write. */
export function readPlist(text: string): InstalledService | null {
  let value: unknown
  try {
    value = parse(text)
  } catch {
    return null
  }
  const parsed = ofOurs.safeParse(value)
  if (!parsed.success) return null
  const [node, ...rest] = parsed.data.ProgramArguments
  const main = rest.find((word) => !word.startsWith('--'))
  if (node === undefined || main === undefined) return null
  const { PATH: path, SVC_STATE_DIR: stateDir } = parsed.data.EnvironmentVariables
  return { node, main, path, stateDir }
}
