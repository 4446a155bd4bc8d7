import { readdirSync, readFileSync } from 'node:fs'
import { trace } from './tracer.ts'

/** The calls by which a program changes files; `write` is also how a thread tells another one that it is done. */
const calls = 'openat,mkdir,write,pwrite64,fsync,fdatasync,ftruncate,rename,unlink'

/**
 * Kills the program (`kill -9`) before the nth call of this thread that changes a file, or one of these files where some are
 * named. Answers what lets it live; nothing happens when it ended meanwhile.
 */
export async function killAt(
  thread: number,
  { nth, paths = [] }: { nth: number; paths?: readonly string[] },
): Promise<() => Promise<void>> {
  const files = paths.flatMap((path) => ['-P', path])
  return trace(thread, [...files, '-e', `trace=${calls}`, '-e', `inject=${calls}:signal=KILL:when=${nth}`])
}

/** From now on these calls of the thread, or those on these files, fail with EIO. Answers what undoes it. */
export function failCalls(
  thread: number,
  failing: string,
  paths: readonly string[] = [],
): Promise<() => Promise<void>> {
  const files = paths.flatMap((path) => ['-P', path])
  return trace(thread, [...files, '-e', `trace=${failing}`, '-e', `inject=${failing}:error=EIO`])
}

/** The one thread in which a Node with `UV_THREADPOOL_SIZE=1` works on files; it is there once something was done. */
export function fileThreadOf(pid: number): number {
  const tasks = `/proc/${pid}/task`
  const found = readdirSync(tasks).filter((id) =>
    readFileSync(`${tasks}/${id}/comm`, 'utf8').startsWith('libuv-worker'),
  )
  if (found.length !== 1) throw new Error(`${found.length} threads of ${pid} work on files`)
  return Number(found[0])
}
