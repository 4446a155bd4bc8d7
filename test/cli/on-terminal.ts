import { spawn } from 'node-pty'
import { svcProgram, type Home } from './run-svc.ts'

export interface OnTerminal {
  /** Says what the terminal was sent so far. */
  shown: { text: string }
  /** Its exit status. */
  ended: Promise<number>
  type(text: string): void
  /** Kills it if it still runs. */
  kill(): void
}

/** svc in a terminal of its own. */
export function onTerminal({ dir, env }: Pick<Home, 'dir' | 'env'>, line: readonly string[], cols = 200): OnTerminal {
  const pty = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', svcProgram, ...line], {
    name: 'xterm-256color',
    cols,
    rows: 40,
    cwd: dir,
    env,
    encoding: null,
  })
  const shown = { text: '' }
  const decoder = new TextDecoder()
  pty.onData((chunk) => (shown.text += decoder.decode(chunk, { stream: true })))
  let isOver = false
  const ended = new Promise<number>((done) =>
    pty.onExit(({ exitCode }) => {
      isOver = true
      done(exitCode)
    }),
  )
  return {
    shown,
    ended,
    type: (text) => pty.write(text),
    kill: () => void (isOver || process.kill(pty.pid, 'SIGKILL')),
  }
}
