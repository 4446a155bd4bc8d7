import { spawn } from 'node:child_process'
import type { Child, ChildLaunch, LeaderExit } from './child.ts'

/**
 * Launches with pipes for input, output and errors, in a session of its own: for a harness whose line protocol a terminal
 * would damage.
 */
export function launchOnPipes(launch: ChildLaunch): Child {
  const child = spawn(launch.file, [...launch.args], {
    cwd: launch.cwd,
    env: { ...launch.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const { pid, stdin, stdout, stderr } = child
  // The error event tells the reason too, a tick later; without a listener it would end this process.
  child.on('error', () => {})
  if (pid === undefined) throw new Error(`${launch.file} could not be started`)
  stdout.on('data', (chunk: Buffer) => launch.onOutput(chunk))
  stderr.on('data', (chunk: Buffer) => launch.onStderr(chunk))
  // A harness that closed its input early is no trouble of ours.
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {})
  const gone = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<LeaderExit>()
  child.on('exit', () => gone.resolve())
  child.on('close', (exitCode, signal) => {
    gone.resolve()
    closed.resolve({ exitCode, signal })
  })
  return {
    pid,
    write: (text) => void (stdin.writable && stdin.write(text)),
    closeInput: () => stdin.end(),
    leaderGone: gone.promise,
    closed: closed.promise,
    abandon: () => {
      stdout.destroy()
      stderr.destroy()
      stdin.destroy()
    },
  }
}
