/**
 * Processor time in ms that the work takes on this thread: what else a busy machine does is not counted. Of work that waits, what the
 * thread does meanwhile is counted, too.
 */
export function cpuMsOf<Result>(work: () => Promise<Result>): Promise<number>
export function cpuMsOf(work: () => unknown): number
export function cpuMsOf(work: () => unknown): number | Promise<number> {
  const before = process.threadCpuUsage()
  const spent = () => {
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  }
  const result = work()
  return result instanceof Promise ? result.then(spent) : spent()
}
