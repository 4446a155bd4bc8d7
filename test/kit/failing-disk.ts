import { execFileSync, spawn } from 'node:child_process'

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
  const args = ['-f', '-p', String(pid), ...files, '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`]
  const tracer = spawn('strace', [...args, '-o', '/dev/null'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const gone = new Promise<void>((resolve) => tracer.once('exit', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    tracer.stderr.on('data', (chunk: Buffer) => chunk.includes('attached') && resolve())
    tracer.once('exit', (code) => reject(new Error(`strace ended with ${code}`)))
  })
  return async () => {
    tracer.kill('SIGINT')
    await gone
  }
}
