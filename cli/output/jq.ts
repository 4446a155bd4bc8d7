import { createContext, runInContext } from 'node:vm'
import { loadJq } from 'jq-wasm/inline'
import { CliError, usageError } from '../errors/cli-error.ts'

/** An expression may go on forever, as `repeat(.)` does. */
const maxMs = 5_000
/** The exit status of jq for an expression that it cannot read. */
const unread = 3

/** Returns what prints a value by the expression: texts as they are, all else as JSON. */
export async function jqFilter(expression: string, timeoutMs = maxMs): Promise<(value: unknown) => string> {
  const jq = await loadJq()
  const apply = (value: unknown) => {
    const { stdout, stderr, exitCode } = within(
      () => jq.raw(JSON.stringify(value), expression, ['-r', '-c']),
      timeoutMs,
    )
    if (exitCode === unread)
      throw usageError(`--jq cannot read \`${expression}\`. ${stderr}`, "For example: --jq '.data[].id'")
    if (exitCode !== 0) throw failed(stderr)
    return stdout === '' ? '' : `${stdout}\n`
  }
  // One that cannot be read is refused before anything is asked.
  try {
    apply(null)
  } catch (error) {
    if (error instanceof CliError && error.code === 'cli.usage') throw error
  }
  return apply
}

/** The only way to stop code that does not return, without another thread: the limit of a script holds for all that it calls. */
function within<T>(act: () => T, timeoutMs: number): T {
  try {
    return runInContext('act()', createContext({ act }), { timeout: timeoutMs }) as T
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw failed(
      code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? `It takes longer than ${timeoutMs / 1_000} seconds.` : message,
    )
  }
}

const failed = (why: string) => new CliError('jq_failed', `The --jq expression failed. ${why.trim()}`)
