import { build, parse } from 'plist'
import { z } from 'zod'
import { serviceLabel } from '../../shared/device/service-file.ts'
import { nodeFlags, restartSeconds, type ServiceDefinition, stopSeconds } from './definition.ts'
import type { InstalledService } from './systemd-unit.ts'

/**
 * The launchd agent. launchd knows no exit status that means "not again", so under it the daemon ends with 0 where it
 * would end with 78, and `SuccessfulExit: false` leaves it down (main.ts). `AbandonProcessGroup`: else launchd would end
 * run hosts with the daemon. `ProcessType: Interactive`: a background job is throttled, and its harnesses with it.
 */
export function plistText(definition: ServiceDefinition): string {
  const { node, main, homeDir, env, umask, outFile } = definition
  const text = build({
    Label: serviceLabel,
    ProgramArguments: [node, ...nodeFlags, main, 'run', '--service', 'launchd'],
    EnvironmentVariables: { ...env, HOME: homeDir },
    WorkingDirectory: homeDir,
    Umask: umask,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: restartSeconds.launchd,
    ExitTimeOut: stopSeconds,
    AbandonProcessGroup: true,
    ProcessType: 'Interactive',
    SoftResourceLimits: { NumberOfFiles: 65_536 },
    StandardOutPath: outFile,
    StandardErrorPath: outFile,
  })
  // Some readers of XML take these characters for the end of a line unless they are written as numbers.
  return `${text.replaceAll(/[\u0085\u2028\u2029]/g, (each) => `&#${each.charCodeAt(0)};`)}\n`
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
