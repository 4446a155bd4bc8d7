import type { UnitState } from './unit-words.ts'

// What all jobs of launchd have in common: that of a device, and that of a server.

export interface LaunchdJob {
  label: string
  program: readonly string[]
  env: Readonly<Record<string, string>>
  homeDir: string
  umask: number
  /** Takes the output of the job. */
  outFile: string
  restartSeconds: number
  stopSeconds: number
  /** Programs that the job started live on when it ends. */
  leavesPrograms: boolean
}

/**
 * The keys of launchd for it. launchd knows no exit status that means "not again", so under it a program ends with 0 where it
 * would end with 78 (`fitLaunchd`), and `SuccessfulExit: false` leaves it down. `ProcessType: Interactive`: a background job is throttled.
 */
export const launchdKeys = (job: LaunchdJob) => ({
  Label: job.label,
  ProgramArguments: [...job.program, '--service', 'launchd'],
  EnvironmentVariables: { ...job.env, HOME: job.homeDir },
  WorkingDirectory: job.homeDir,
  Umask: job.umask,
  RunAtLoad: true,
  KeepAlive: { SuccessfulExit: false },
  ThrottleInterval: job.restartSeconds,
  ExitTimeOut: job.stopSeconds,
  AbandonProcessGroup: job.leavesPrograms,
  ProcessType: 'Interactive',
  SoftResourceLimits: { NumberOfFiles: 65_536 },
  StandardOutPath: job.outFile,
  StandardErrorPath: job.outFile,
})

/** Some readers of XML take these characters for the end of a line unless they are written as numbers. */
export const plistOf = (xml: string): string =>
  `${xml.replaceAll(/[\u0085\u2028\u2029]/g, (each) => `&#${each.charCodeAt(0)};`)}\n`

/** Reads `launchctl print`; null: launchd does not know the service. */
export function stateFromLaunchctl(shown: string | null): Omit<UnitState, 'enabled'> {
  if (shown === null) return { loaded: false, running: false, failed: null, pid: null }
  const pid = Number(/^\s*pid = (\d+)$/m.exec(shown)?.[1] ?? 0)
  const exit = /^\s*last exit code = (\d+)/m.exec(shown)?.[1]
  const isRunning = pid > 0
  return {
    loaded: true,
    running: isRunning,
    // After any other end launchd is about to start it again.
    failed: !isRunning && exit === '0' ? 'by itself, status 0' : null,
    pid: isRunning ? pid : null,
  }
}

/** Reads `launchctl print-disabled`: whether somebody disabled the service. */
export const isDisabledIn = (shown: string, label: string): boolean =>
  shown.includes(`"${label}" => disabled`) || shown.includes(`"${label}" => true`)

const longestOutputBytes = 1024 * 1024

/**
 * Does what launchd cannot do for its jobs. It starts everything again that ends with another status than 0, so "not to be started
 * again" (78) is said with 0. And it never cuts the file that takes the job's output; it appends, so that cutting is safe.
 */
export function fitLaunchd({
  fstatSync,
  ftruncateSync,
}: {
  fstatSync: (fd: number) => { isFile(): boolean; size: number }
  ftruncateSync: (fd: number, length: number) => void
}): void {
  process.on('exit', (code) => {
    if (code === 78) process.exitCode = 0
  })
  const output = fstatSync(2)
  if (output.isFile() && output.size > longestOutputBytes) ftruncateSync(2, 0)
}
