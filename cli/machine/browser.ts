import { spawn } from 'node:child_process'

/** Opens an address in the person's browser. False when no program for that started. */
export async function openBrowser(url: string): Promise<boolean> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [url], { detached: true, stdio: 'ignore' })
  // It may stay as long as the browser does.
  child.unref()
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('spawn', () => resolve(true))
  })
}
