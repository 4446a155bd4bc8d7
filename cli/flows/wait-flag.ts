import type { CommandContext } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'

const maxWaitMs = 86_400_000

/** The milliseconds of --wait; null: it was not given. */
export function readWait(values: CommandContext['values']): number | null {
  const waitMs = values.local['wait']
  if (typeof waitMs !== 'number') return null
  if (waitMs < 1 || waitMs > maxWaitMs || !Number.isInteger(waitMs))
    throw usageError(`--wait takes 1 to ${maxWaitMs} milliseconds.`)
  return waitMs
}
