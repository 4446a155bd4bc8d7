/**
 * Lets no more code be optimized in this process, which another thread would do. At the exit Node waits for that thread, and the thread may
 * wait for this one to collect garbage: then the process never ends (nodejs/node#54918, seen with 24.21). What is being optimized when this
 * is called ends while this thread goes on, so it is called some work before the exit; and after all is loaded, which takes three times as
 * long from here on (see `collectGarbage`).
 */
export function optimizeNothing(): void {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  for (const flag of ['--no-turbofan', '--no-maglev']) setFlagsFromString(flag)
}

type Collect = (options?: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/**
 * Collects garbage now. `isThorough`: frees the code of functions that ran once, too, and takes some 30 ms.
 *
 * A context that is made while the flag is set has the function. The flag is taken back at once: while one is not as it was at the
 * start, V8 takes no compiled code from a cache, and what Node loads, its own modules too, takes three times as long.
 */
export function collectGarbage({ isThorough }: { isThorough: boolean }): void {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  setFlagsFromString('--expose-gc')
  const collect = process.getBuiltinModule('node:vm').runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  if (isThorough) collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  else collect()
}
