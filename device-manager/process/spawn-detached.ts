import type { Readable, Writable } from 'node:stream'
import { identityOf, type ProcessIdentity } from './identity.ts'
import { explainSpawnError, findProgram, spawnPiped } from './program.ts'

export interface DetachedLaunch {
  file: string
  args: readonly string[]
  cwd: string
  /** The whole environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
}

export interface DetachedExit {
  exitCode: number | null
  signal: NodeJS.Signals | null
}

/** A program on pipes that leads a session and process group of its own: pid = group = session. */
export interface DetachedProgram {
  /** null when it was gone before it could be looked at, or could not be looked at. */
  identity: ProcessIdentity | null
  pid: number
  stdin: Writable
  stdout: Readable
  stderr: Readable
  /** The leader ended. Output may follow: a child of its may hold the pipes. */
  exited: Promise<DetachedExit>
  /** The leader ended and both outputs are at their end. */
  closed: Promise<DetachedExit>
}

/** Starts a program. Rejects with a SpawnError. Writing to a program that has closed its input is no error. */
export async function spawnDetached(launch: DetachedLaunch): Promise<DetachedProgram> {
  const file = findProgram(launch)
  const piped = spawnPiped(file, launch.args, {
    argv0: launch.file,
    cwd: launch.cwd,
    env: launch.env,
    // setsid: out of the daemon's session, so that no terminal or group signal of the one reaches the other.
    detached: true,
  })
  if ('failed' in piped) throw explainSpawnError(await piped.failed, launch.file)
  const { child, pid } = piped
  const exited = new Promise<DetachedExit>((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const closed = new Promise<DetachedExit>((resolve) => {
    child.once('close', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  return {
    identity: seen(pid),
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    closed,
  }
}

function seen(pid: number): ProcessIdentity | null {
  try {
    return identityOf(pid)
  } catch {
    // No file is left to look with; it is still known by its group and its mark.
    return null
  }
}
