import { spawn } from 'node:child_process'

/** The shell did not find the program. */
const notFound = 127

/** Shows the text in a program such as `less` until the person closes it; false where that program cannot be started. */
export function showInPager(text: string, command: string): Promise<boolean> {
  // Ctrl-C is for the pager: svc would leave the terminal to two programs.
  const ignore = () => undefined
  process.on('SIGINT', ignore)
  return new Promise<boolean>((resolve) => {
    // F: quit where all fits; R: show colours; X: leave what was shown on the screen.
    const env = { LESS: 'FRX', ...process.env }
    const child = spawn(command, { shell: true, stdio: ['pipe', 'inherit', 'inherit'], env })
    child.on('error', () => resolve(false))
    child.on('close', (status) => resolve(status !== notFound))
    // Closed before all was read.
    child.stdin.on('error', ignore)
    child.stdin.end(text)
  }).finally(() => process.off('SIGINT', ignore))
}
