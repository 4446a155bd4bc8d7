/**
 * Has no more code optimized in this process, which another thread would do. At the exit Node waits for that thread, and the thread may
 * wait for this one to collect garbage: then the process never ends (nodejs/node#54918, seen with 24.21). What is being optimized when
 * this is called ends while this thread goes on, so it is called some work before the exit.
 */
export function optimizeNothing(): void {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  for (const flag of ['--no-turbofan', '--no-maglev']) setFlagsFromString(flag)
}
