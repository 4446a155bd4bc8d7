/** Does the work. At Ctrl-C the last words are said, and svc ends by the signal, so that a shell sees what ended it. */
export async function untilInterrupted<T>(sayLast: () => void, work: () => Promise<T>): Promise<T> {
  const onInterrupt = () => {
    sayLast()
    // Once more, now without this handler.
    process.kill(process.pid, 'SIGINT')
  }
  process.once('SIGINT', onInterrupt)
  try {
    return await work()
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}
