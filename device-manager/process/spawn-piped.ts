import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'

export interface PipedLaunch {
  cwd: string
  /** The whole environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
  /** Leads a session of its own. */
  detached?: boolean
  argv0?: string
}

export type Piped =
  | { child: ChildProcessWithoutNullStreams; pid: number }
  /** Nothing was started; why, is known a moment later. */
  | { failed: Promise<Error> }

/**
 * Starts a program with pipes for its input, output and errors. Never throws. All programs of the device manager that have
 * pipes are started here: when the system has no file left, Node returns a child without any pipe, whose `stdout` is
 * undefined whatever its type says, and tells why in an `error` event, which ends a process that does not listen.
 * Writing to a program that has closed its input is no error.
 */
export function spawnPiped(file: string, args: readonly string[], launch: PipedLaunch): Piped {
  let child: ChildProcessWithoutNullStreams
  try {
    child = spawn(file, [...args], { ...launch, env: { ...launch.env }, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    // A path that cannot be an argument, or no memory for a process.
    return { failed: Promise.resolve(error instanceof Error ? error : new Error(String(error))) }
  }
  const failed = new Promise<Error>((resolve) => child.once('error', resolve))
  // One after the start says only that a signal could not be sent.
  child.on('error', () => undefined)
  for (const pipe of [child.stdin, child.stdout, child.stderr] as (typeof child.stdin | undefined)[])
    pipe?.on('error', () => undefined)
  return child.pid === undefined ? { failed } : { child, pid: child.pid }
}
