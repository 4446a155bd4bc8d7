const everyMs = 5

/**
 * The longest time for which this thread worked without letting others in, while the work is done, in milliseconds. A timer that
 * comes late for others' doing, on a busy machine, counts only as far as the thread had a processor.
 */
export async function longestHold(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let last = look()
  const timer = setInterval(() => {
    const now = look()
    longest = Math.max(longest, Math.min(now.at - last.at - everyMs, now.worked - last.worked))
    last = now
  }, everyMs)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return longest
}

function look() {
  const { user, system } = process.threadCpuUsage()
  return { at: performance.now(), worked: (user + system) / 1_000 }
}
