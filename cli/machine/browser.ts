import { spawn } from 'node:child_process'

/** Opens an address in the person's browser. Returns false when no program for that could be started. */
export async function openBrowser(url: string): Promise<boolean> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [url], { detached: true, stdio: 'ignore' })
  // The program may stay as long as the browser does.
  child.unref()
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('spawn', () => resolve(true))
  })
}
