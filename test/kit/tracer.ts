import { spawn } from 'node:child_process'

/** Has strace watch a process or a thread, and do to its calls what the arguments say. Answers what ends that. */
export async function trace(id: number, what: readonly string[]): Promise<() => Promise<void>> {
  const args = ['-p', String(id), ...what, '-o', '/dev/null']
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
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
