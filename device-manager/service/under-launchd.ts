import { fstatSync, ftruncateSync } from 'node:fs'

const longestOutputBytes = 1024 * 1024

/**
 * Does what launchd cannot do for its jobs. It starts everything again that ends with another status than 0, so "not to be started
 * again" (78) is said with 0. And it never cuts the file that takes the job's output; it appends, so that cutting is safe.
 */
export function fitLaunchd(): void {
  process.on('exit', (code) => {
    if (code === 78) process.exitCode = 0
  })
  const output = fstatSync(2)
  if (output.isFile() && output.size > longestOutputBytes) ftruncateSync(2, 0)
}
