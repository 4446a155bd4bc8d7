import { ServiceError } from './service-error.ts'

// The programs of the service managers: systemctl, loginctl, launchctl.

export interface ToolResult {
  /** null: the program is not there, or did not end in time. */
  status: number | null
  stdout: string
  /** Its output, cut; or why it could not be run. */
  said: string
}

export type RunTool = (name: string, args: readonly string[]) => Promise<ToolResult>

/** Stopping a service waits for its daemon, which is given a minute (`stopSeconds` of definition.ts). */
const limitMs = 90_000
const maxOutputBytes = 1024 * 1024

/** Runs tools found on the PATH of `env`. Never fails by itself: the caller knows what a status means. */
export function toolRunner(env: Readonly<Record<string, string | undefined>>, timeout = limitMs): RunTool {
  const toolEnv = { ...env, LC_ALL: 'C', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' }
  return async (name, args) => {
    // Here, because most commands of the service need no tool.
    const { execa } = await import('execa')
    const ended = await execa(name, args, {
      env: toolEnv,
      extendEnv: false,
      timeout,
      maxBuffer: maxOutputBytes,
      stripFinalNewline: false,
      reject: false,
      // A tool that has begun goes on although this program is told to end.
      cleanup: false,
    })
    const status = ended.exitCode ?? null
    // Programs that could not be started have no output.
    const [stdout, stderr] = [ended.stdout ?? '', ended.stderr ?? '']
    if (status === 0 && !ended.failed) return { status, stdout, said: lastOf(stderr) }
    const trouble = ended.timedOut ? 'it did not end in time' : (ended.code ?? ended.originalMessage)
    const said = lastOf(stderr) || lastOf(stdout) || (status === null ? String(trouble) : `status ${status}`)
    return { status, stdout, said }
  }
}

const lastOf = (text: string) => text.trim().slice(-2000)

/** Runs a tool that must succeed. */
export async function mustRun(run: RunTool, name: string, args: readonly string[]): Promise<string> {
  const { status, stdout, said } = await run(name, args)
  if (status === 0) return stdout
  throw new ServiceError(
    'tool_failed',
    `\`${[name, ...args].join(' ')}\` failed: ${said}`,
    'Correct what the message names, then type the command again.',
  )
}
