import { execFileSync } from 'node:child_process'
import { trace } from './tracer.ts'

/** null: writes of a running program can be made to fail here. */
export function whyNoFailingDisk(): string | null {
  try {
    execFileSync('strace', ['-e', 'trace=none', 'true'], { stdio: 'ignore' })
    return null
  } catch {
    return 'strace is not installed, or may not trace here'
  }
}

/** From now on whatever the program writes to these files, or syncs of them, fails with EIO. Answers what undoes it. */
export async function failWrites(pid: number, paths: readonly string[]): Promise<() => Promise<void>> {
  const calls = 'pwrite64,write,fsync,fdatasync,ftruncate'
  const files = paths.flatMap((path) => ['-P', path])
  return trace(pid, ['-f', ...files, '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`])
}
