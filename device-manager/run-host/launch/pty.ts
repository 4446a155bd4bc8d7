import { closeSync, constants as files, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import { constants } from 'node:os'
import { spawn, type IPty } from 'node-pty'
import type { Child, ChildLaunch, LeaderExit } from './child.ts'

/**
 * Launches in a pseudo-terminal. Bytes come as they are and the terminal is never paused: output that waits near the exit
 * is lost. node-pty closes the terminal 200 ms after the leader's exit, with what a child in the background still writes;
 * that close is held back here until the output ended by itself or `abandon` was called. It has no event for the end of the
 * output (https://github.com/microsoft/node-pty/issues/72), so this file goes by two of its private fields.
 *
 * The program's end of the terminal is held open beside it for as long as it lives: a program may close all it has of it
 * (`exec >log 2>&1 </dev/null`), and a terminal that is read to its end then is hung up, which would kill the program.
 */
export function launchInPty(launch: ChildLaunch): Child {
  const pty = spawn(launch.file, [...launch.args], {
    name: 'xterm-256color',
    cols: 120,
    rows: 40,
    cwd: launch.cwd,
    env: { ...launch.env },
    encoding: null,
  })
  // The listener comes first: what the program prints at once must find it.
  pty.onData((chunk) => launch.onOutput(chunk))
  const gone = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<LeaderExit>()
  const letGo = holdOpen(pty.ptsName)
  const onLeaderGone = () => {
    letGo()
    gone.resolve()
  }
  onExitSeen(pty, onLeaderGone)
  const close = holdClose(pty, onLeaderGone)
  pty.onExit(({ exitCode, signal }) => {
    onLeaderGone()
    closed.resolve(signal ? { exitCode: null, signal: signalName(signal) } : { exitCode, signal: null })
  })
  return {
    pid: pty.pid,
    terminal: pty.ptsName,
    write: (text) => pty.write(text),
    closeInput: () => pty.write('\u{4}'),
    leaderGone: gone.promise,
    closed: closed.promise,
    abandon: close,
  }
}

/** Returns the function that closes it, which may be called twice. */
function holdOpen(terminal: string): () => void {
  let file: number | null = null
  try {
    file = openSync(terminal, files.O_RDWR | files.O_NOCTTY | files.O_NONBLOCK)
  } catch {
    // The program has left already, or the system has no more files: its output is read as it comes.
  }
  return () => {
    if (file !== null) closeSync(file)
    file = null
  }
}

/**
 * node-pty notes the leader's exit in its private `_boundClose` and tells of it only after its timer, since the terminal
 * is still open then. Heard at once here, the end that is held is let go and the output ends without that delay. Where it
 * is not written any more the timer tells.
 */
function onExitSeen(pty: IPty, onLeaderGone: () => void): void {
  let value = (pty as unknown as Record<string, unknown>)['_boundClose']
  Object.defineProperty(pty, '_boundClose', {
    get: () => value,
    set: (isNoted: unknown) => {
      value = isNoted
      if (isNoted === true) onLeaderGone()
    },
  })
}

/**
 * Takes over when the terminal's socket is destroyed. An end or an error of the stream itself passes; a bare `destroy()`
 * is node-pty's own timer, which says that the leader has exited. `_socket` is not of node-pty's public interface, so its
 * version is pinned and a change of it fails the launch loudly.
 */
function holdClose(pty: IPty, onLeaderGone: () => void): () => void {
  const socket = (pty as unknown as Record<string, Socket | undefined>)['_socket']
  if (typeof socket?.destroy !== 'function') throw new Error('this version of node-pty has no socket to hold open')
  const destroy = socket.destroy.bind(socket)
  socket.destroy = (error?: Error) => {
    if (error || socket.readableEnded) return destroy(error)
    onLeaderGone()
    return socket
  }
  return () => void destroy()
}

function signalName(signal: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === signal)
  return found ? found[0] : `signal ${signal}`
}
